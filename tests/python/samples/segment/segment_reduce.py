"""Samples of src/ops/segment/segment_reduce.cpp."""

import numpy as np
from samples.common import Error, Op, Sample, T

ROWS, BATCH = T(6, 3), T(2, 4, 3)
LENGTHS = T(3, dtype="int64", low=2, high=2)
EACH = T(2, 2, dtype="int64", low=2, high=2)
EMPTY = T(2, dtype="int64", low=0, high=0)
KINDS = ("sum", "mean", "prod", "max", "min")
NUMPY = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min}


def _segments(data, reduce, lengths, axis=0, **_):
    """All segments of these samples have two elements."""
    shape = (*data.shape[:axis], -1, 2, *data.shape[axis + 1 :])
    return NUMPY[reduce](data.reshape(shape), axis=axis + 1)


OPS = [
    Op(
        "segment_reduce",
        [Sample(ROWS, kind, lengths=LENGTHS) for kind in KINDS]
        + [Sample(BATCH, kind, lengths=EACH, axis=1) for kind in KINDS],
        reference=_segments,
        tolerance=4,
        errors=[
            Error(RuntimeError, "got neither", Sample(ROWS, "sum")),
            Error(RuntimeError, "another sum", Sample(T(5), "sum", lengths=LENGTHS)),
            Error(RuntimeError, "reduce to be", Sample(ROWS, "median", lengths=LENGTHS)),
            Error(RuntimeError, "last dimension", Sample(BATCH, "sum", lengths=LENGTHS, axis=1)),
            Error(RuntimeError, "indices", Sample(ROWS, "sum", indices=LENGTHS)),
        ],
    ),
    Op(
        "segment_reduce",
        [Sample(ROWS, kind, lengths=LENGTHS, initial=1.5) for kind in KINDS]
        + [Sample(T(0, 3, grad=False), kind, lengths=EMPTY) for kind in KINDS]
        + [
            Sample(ROWS, "sum", offsets=T(2, dtype="int64", low=1, high=1), unsafe=True),
            Sample(T(6, 3, unique=True), "amax", lengths=T(1, dtype="int32", low=6, high=6)),
        ],
        tolerance=4,
    ),
]
