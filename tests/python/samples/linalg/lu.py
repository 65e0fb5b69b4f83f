"""Samples of src/ops/linalg/lu.cpp."""

from samples.common import Error, Op, Sample, T

MATRICES = [
    Sample(T(3, 3)),
    Sample(T(2, 4, 4)),
    Sample(T(5, 3)),
    Sample(T(2, 3, 5)),
    Sample(T(3, 3, layout="transposed")),
    Sample(T(20, 20)),
    Sample(T(40, 40)),  # more than kernels of small matrices take
    Sample(T(0, 0)),
    Sample(T(0, 3, 3)),
    Sample(T(2, 0, 3)),
    Sample(T(3, 0)),
]
SINGULAR = T(2, 2, low=0, high=0)


def _wrong():
    return [
        Error(RuntimeError, "2 dimensions", Sample(T(3))),
        Error(NotImplementedError, "float32", Sample(T(2, 2, dtype="int64"))),
        Error(RuntimeError, "without pivoting", Sample(T(2, 2), pivot=False)),
    ]


def _pivots(*shape):
    return T(*shape, dtype="int32", low=3, high=3, grad=False)


OPS = [
    Op(
        "linalg.lu_factor_ex",
        [*MATRICES, Sample(SINGULAR)],
        dtypes="full complex",
        tolerance=200,
        grad=False,
        errors=[
            *_wrong(),
            Error(RuntimeError, "pivot 1 is zero", Sample(SINGULAR, check_errors=True)),
        ],
    ),
    Op(
        "linalg.lu_factor",
        [*MATRICES, Sample(T(3, 3, layout="strided"))],
        dtypes="full complex",
        tolerance=1000,
        layouts=False,  # with equal rows there is a pivot of zero
        errors=[
            *_wrong(),
            Error(RuntimeError, "pivot 1 is zero", Sample(SINGULAR)),
            Error(RuntimeError, "of matrix 0", Sample(T(1, 2, 2, low=0, high=0))),
        ],
    ),
    Op(
        "linalg.lu",
        [*MATRICES[:5], *MATRICES[7:]],
        dtypes="full complex",
        tolerance=1000,
        errors=_wrong(),
    ),
    Op(
        "lu_unpack",
        [
            Sample(T(3, 3), _pivots(3)),
            Sample(T(2, 5, 3), _pivots(2, 3)),
            Sample(T(2, 3, 5), _pivots(2, 3)),
            Sample(T(3, 3, grad=False), _pivots(3), unpack_data=False),
            Sample(T(3, 3), _pivots(3), unpack_pivots=False),
            Sample(T(0, 0), _pivots(0)),
        ],
        dtypes="full complex",
        errors=[
            Error(RuntimeError, "int32", Sample(T(3, 3), T(3, dtype="int64", low=1, high=3))),
            Error(ValueError, "LU_pivots to have shape", Sample(T(3, 3), _pivots(2))),
            Error(RuntimeError, "pivots from 1 to the 2", Sample(T(2, 2), _pivots(2))),
        ],
    ),
    Op(
        "linalg.lu_solve",
        [
            Sample(T(3, 3, low=0.5), _pivots(3), T(3, 2)),
            Sample(T(3, 3, low=0.5), _pivots(3), T(3, 2), adjoint=True),
            Sample(T(3, 3, low=0.5), _pivots(3), T(2, 3), left=False),
            Sample(T(3, 3, low=0.5), _pivots(3), T(2, 3), left=False, adjoint=True),
            Sample(T(2, 3, 3, low=0.5), _pivots(2, 3), T(4, 1, 3, 2)),
            Sample(T(4, 1, 3, 3, low=0.5), _pivots(4, 1, 3), T(2, 3, 2)),
            Sample(T(3, 3, low=0.5), _pivots(3), T(3, 0)),
            Sample(T(0, 0), _pivots(0), T(0, 2)),
        ],
        dtypes="full complex",
        tolerance=200,
        errors=[
            Error(RuntimeError, "square", Sample(T(2, 3), _pivots(2), T(2, 2))),
            Error(RuntimeError, "a pivot for each", Sample(T(3, 3), _pivots(2), T(3, 2))),
            Error(RuntimeError, "as many matrices", Sample(T(3, 3), _pivots(2, 3), T(3, 2))),
            Error(RuntimeError, "AX = B", Sample(T(3, 3), _pivots(3), T(2, 2))),
            Error(RuntimeError, "pivots from 1", Sample(T(2, 2), _pivots(2), T(2, 2))),
        ],
    ),
    Op(
        "lu_solve",
        [Sample(T(3, 2), T(3, 3, low=0.5), _pivots(3))],
        dtypes="full complex",
        tolerance=200,
        beyond_torch="its first call warns that the function is deprecated",
        errors=[Error(RuntimeError, "2 dimensions", Sample(T(3), T(3, 3), _pivots(3)))],
    ),
]
