"""Samples of src/ops/linalg/ldl.cpp."""

from samples.common import Error, Op, Sample, T

MATRICES = [
    Sample(T(3, 3)),
    Sample(T(2, 4, 4)),
    Sample(T(3, 3, layout="transposed")),
    Sample(T(3, 3), hermitian=True),
    Sample(T(0, 0)),
    Sample(T(0, 3, 3)),
]
WRONG = [
    Error(RuntimeError, "square", Sample(T(2, 3))),
    Error(RuntimeError, "2 dimensions", Sample(T(2))),
]


def _pivots(*shape, low=3):
    return T(*shape, dtype="int32", low=low, high=low, grad=False)


OPS = [
    Op("linalg.ldl_factor_ex", MATRICES, dtypes="full complex", tolerance=200, grad=False),
    Op(
        "linalg.ldl_factor",
        MATRICES,
        dtypes="full complex",
        tolerance=200,
        grad=False,
        errors=[*WRONG, Error(RuntimeError, "block 1 of D", Sample(T(2, 2, low=0, high=0)))],
    ),
    Op(
        "linalg.ldl_solve",
        [
            Sample(T(3, 3, low=0.5), _pivots(3), T(3, 2)),
            Sample(T(2, 3, 3, low=0.5), _pivots(2, 3), T(2, 3, 2)),
            Sample(T(2, 2, low=0.5), _pivots(2, low=-2), T(2, 2)),
            Sample(T(0, 0), _pivots(0), T(0, 2)),
        ],
        dtypes="full complex",
        tolerance=200,
        grad=False,
        errors=[
            Error(RuntimeError, "square", Sample(T(2, 3), _pivots(2), T(2, 2))),
            Error(RuntimeError, "a pivot for each", Sample(T(3, 3), _pivots(2), T(3, 2))),
            Error(RuntimeError, "AX = B", Sample(T(3, 3), _pivots(3), T(2, 2))),
        ],
    ),
]
