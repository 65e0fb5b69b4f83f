"""Samples of indexing with tensors, masks and nonzero."""

import numpy as np
from samples.common import Error, Op, Sample, T


def I(*shape, high=2, low=0):  # noqa: E743
    return T(*shape, dtype="int64", low=low, high=high)


def M(*shape, **options):
    return T(*shape, dtype="bool", **options)


MASKS = [
    Sample(T(3, 4), M(3, 4)),
    Sample(T(3, 4, layout="transposed"), M(4)),
    Sample(T(4), M(3, 4)),
    Sample(T(), M()),
    Sample(T(0, 3), M(0, 3)),
]

OPS = [
    Op(
        "index_put",
        dtypes="float complex int bool",
        samples=[
            Sample(T(3, 4), [T(2, dtype="int64", low=0, high=2, unique=True)], T(2, 4)),
            Sample(
                T(3, 4, 5, layout="transposed"), [I(3), I(3, high=3, low=-4)], T(), accumulate=True
            ),
            Sample(T(3, 4), [I(6)], T(4), accumulate=True),
            Sample(T(3, 4), [I(0)], T(0, 4)),
        ],
        errors=[
            Error(
                IndexError,
                "out of bounds for dimension 0 with size 3",
                Sample(T(3), [I(1, low=7, high=7)], T(1)),
            ),
            Error(
                RuntimeError, "shape mismatch: values must broadcast", Sample(T(3), [I(2)], T(5))
            ),
        ],
    ),
    Op(
        "masked_fill",
        dtypes="float complex int bool",
        samples=[Sample(*s.args, 1) for s in MASKS] + [Sample(T(2, 3), M(2, 3), T())],
        errors=[Error(RuntimeError, "mask must be bool", Sample(T(3), T(3, dtype="float32"), 0))],
    ),
    Op(
        "masked_select",
        dtypes="float complex int bool",
        samples=MASKS,
        errors=[Error(RuntimeError, "BoolTensor", Sample(T(3), T(3, dtype="float32")))],
    ),
    Op(
        "masked_scatter",
        dtypes="float complex int bool",
        samples=[
            Sample(T(3, 4), M(3, 4), T(12)),
            Sample(T(3, 4, layout="transposed"), M(4), T(3, 4)),
            Sample(T(), M(), T(1)),
        ],
    ),
    Op(
        "nonzero",
        dtypes="float complex int bool",
        grad=False,
        samples=[
            Sample(T(3, 4, low=-1, high=1)),
            Sample(T(2, 3, 4, layout="transposed")),
            Sample(T()),
            Sample(T(0, 3)),
        ],
        reference=lambda x: np.argwhere(x) if x.ndim else np.zeros((int(x != 0), 0), np.int64),
    ),
    Op(
        "argwhere",
        dtypes="float int bool",
        grad=False,
        samples=[Sample(T(3, 4, low=-1, high=1)), Sample(T(0, 3))],
        reference=np.argwhere,
    ),
    Op(
        "nonzero_static",
        dtypes="float int bool",
        grad=False,
        samples=[
            Sample(T(3, 4, low=-1, high=1), size=3),
            Sample(T(5), size=9, fill_value=7),
            Sample(T(0), size=2),
        ],
        errors=[Error(RuntimeError, "size must not be negative", Sample(T(2), size=-1))],
    ),
    Op(
        "unravel_index",
        dtypes="int64 int32 uint8",
        grad=False,
        samples=[
            Sample(I(2, 3, high=19), (4, 5)),
            Sample(T(6, low=0, high=23, layout="strided"), (2, 3, 4)),
            Sample(I(high=3), 4),
            Sample(I(0), (2, 0)),
            Sample(T(2), ()),
        ],
        errors=[
            Error(ValueError, "must have elements", Sample(I(3), (2, 0))),
            Error(ValueError, "must not be negative", Sample(I(3), (2, -1))),
            Error(TypeError, "must be integers", Sample(T(3, dtype="float32"), (2, 2))),
        ],
    ),
]
