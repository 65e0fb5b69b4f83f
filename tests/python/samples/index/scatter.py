"""Samples of gather, scatter and indexing along one dimension."""

import numpy as np
from samples.common import Error, Op, Sample, T


def I(*shape, high=2, low=0, **options):  # noqa: E743
    return T(*shape, dtype="int64", low=low, high=high, **options)


REDUCE = [
    Sample(T(3, 4), 0, I(2, 4), T(2, 4), how, include_self=own)
    for how in ("sum", "prod", "mean", "amax", "amin")
    for own in (True, False)
]

OPS = [
    Op(
        "gather",
        dtypes="float complex int bool",
        samples=[
            Sample(T(3, 4), 0, I(2, 4)),
            Sample(T(3, 4, layout="transposed"), -1, I(3, 6, high=3)),
            Sample(T(), 0, I(high=0)),
            Sample(T(2, 3, 4), 1, I(0, 2, 4)),
        ],
        errors=[
            Error(RuntimeError, "index 7 is out of bounds", Sample(T(3), 0, I(1, low=7, high=7))),
            Error(RuntimeError, "index must have as many dimensions as", Sample(T(3, 4), 0, I(1))),
        ],
    ),
    Op(
        "scatter",
        dtypes="float complex int bool",
        samples=[
            Sample(T(3, 4), 0, I(1, 4), T(1, 4)),
            Sample(T(3, 4, layout="transposed"), 1, I(3, 1, high=3), 2),
            Sample(T(), 0, I(high=0), T()),
        ],
        errors=[
            Error(
                RuntimeError, "index must have as many dimensions as", Sample(T(3, 4), 0, I(1), 1)
            )
        ],
    ),
    Op(
        "scatter_add",
        dtypes="float complex int",
        samples=[
            Sample(T(3, 4), 0, I(5, 4), T(5, 4)),
            Sample(T(3, 4, layout="transposed"), -1, I(3, 6, high=3), T(3, 6)),
            Sample(T(), 0, I(high=0), T()),
        ],
    ),
    Op(
        "scatter_reduce",
        dtypes="full int",
        samples=REDUCE,
        errors=[
            Error(
                RuntimeError,
                "reduce must be sum, prod, mean, amax or",
                Sample(T(3), 0, I(2), T(2), "median"),
            )
        ],
    ),
    Op(
        "index_reduce",
        dtypes="full int",
        samples=[
            Sample(T(3, 4), 0, I(4), T(4, 4), how, include_self=own)
            for how in ("prod", "mean", "amax", "amin")
            for own in (True, False)
        ],
    ),
    Op(
        "index_select",
        dtypes="float complex int bool",
        samples=[
            Sample(T(3, 4), 0, I(5)),
            Sample(T(3, 4, layout="transposed"), -1, I(2, high=3)),
            Sample(T(), 0, I(1, high=0)),
            Sample(T(3, 4), 1, I(0)),
        ],
        reference=lambda x, dim, i: np.take(x, i, axis=dim) if x.ndim else x,
        errors=[
            Error(IndexError, "index out of range in self", Sample(T(3), 0, I(1, low=5, high=5)))
        ],
    ),
    Op(
        "index_add",
        dtypes="float complex int",
        samples=[
            Sample(T(3, 4), 0, I(5), T(5, 4)),
            Sample(T(3, 4, layout="transposed"), -1, I(2, high=3), T(3, 2), alpha=2),
            Sample(T(), 0, I(high=0), T()),
        ],
    ),
    Op(
        "index_copy",
        dtypes="float complex int bool",
        samples=[
            Sample(T(3, 4), 0, I(2, unique=True), T(2, 4)),
            Sample(T(3, 4, layout="transposed"), -1, I(1, high=3), T(3, 1)),
        ],
    ),
    Op(
        "index_fill",
        dtypes="float complex int bool",
        samples=[
            Sample(T(3, 4), 0, I(2), 1),
            Sample(T(3, 4, layout="transposed"), -1, I(2, low=-2, high=-1), T()),
        ],
        beyond_torch="its gradient by value lacks the negative indices that the operator takes",
    ),
    Op(
        "take",
        dtypes="float complex int bool",
        samples=[
            Sample(T(3, 4), I(2, 3, low=-12, high=11)),
            Sample(T(3, 4, layout="transposed"), I(3, high=11)),
            Sample(T(3), I(0)),
        ],
        reference=lambda x, i: np.ravel(x)[i],
        errors=[
            Error(
                IndexError,
                "index 70 is out of range for a tensor",
                Sample(T(3), I(1, low=70, high=70)),
            )
        ],
    ),
    Op(
        "put",
        dtypes="float complex int",
        samples=[
            Sample(T(3, 4), I(5, high=11), T(5), accumulate=True),
            Sample(T(3, 4, layout="transposed"), I(3, high=11, unique=True), T(3)),
        ],
    ),
    Op(
        "take_along_dim",
        dtypes="float complex int bool",
        samples=[
            Sample(T(3, 4), I(1, 4), 0),
            Sample(T(3, 1), I(3, 4, low=-1, high=0), 1),
            Sample(T(3, 4), I(5, high=11)),
        ],
    ),
]
