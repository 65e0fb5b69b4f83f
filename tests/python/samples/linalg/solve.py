"""Samples of src/ops/linalg/solve.cpp."""

import numpy as np
from samples.common import Error, Op, Sample, T


def _solve(A, B, left=True):
    if B.ndim == 1 or B.shape == A.shape[:-1]:
        return np.linalg.solve(A, np.broadcast_to(B, A.shape[:-1])[..., None])[..., 0]
    # As many dimensions as A has, by which NumPy 1 knows that these are matrices, too.
    B = np.broadcast_to(B, (*np.broadcast_shapes(A.shape[:-2], B.shape[:-2]), *B.shape[-2:]))
    if left:
        return np.linalg.solve(A, B)
    return np.linalg.solve(A.swapaxes(-1, -2), B.swapaxes(-1, -2)).swapaxes(-1, -2)


SINGULAR = T(2, 2, low=0, high=0)

OPS = [
    Op(
        "linalg.solve",
        [
            Sample(T(3, 3), T(3, 2)),
            Sample(T(3, 3), T(3)),
            Sample(T(2, 3, 3), T(3)),
            Sample(T(2, 3, 3), T(2, 3)),
            Sample(T(2, 3, 3), T(4, 1, 3, 2)),
            Sample(T(4, 1, 3, 3), T(2, 3, 2)),
            Sample(T(3, 3), T(2, 3), left=False),
            Sample(T(2, 3, 3), T(5, 3), left=False),
            Sample(T(3, 3, layout="transposed"), T(3, 2)),
            Sample(T(3, 3, layout="strided"), T(3, 2, layout="strided")),
            Sample(T(20, 20), T(20, 5)),
            Sample(T(40, 40), T(40, 3)),  # more than kernels of small matrices take
            Sample(T(40, 40), T(3, 40), left=False),
            Sample(T(3, 3), T(3, 0)),
            Sample(T(0, 0), T(0, 2)),
            Sample(T(0, 3, 3), T(3, 2)),
        ],
        reference=_solve,
        dtypes="full complex",
        tolerance=1000,
        layouts=False,  # with equal rows a matrix is singular
        errors=[
            Error(RuntimeError, "square", Sample(T(2, 3), T(2))),
            Error(RuntimeError, "2 dimensions", Sample(T(2), T(2))),
            Error(RuntimeError, "one dtype", Sample(T(2, 2), T(2, dtype="float64"))),
            Error(RuntimeError, "AX = B", Sample(T(2, 2), T(3))),
            Error(RuntimeError, "XA = B", Sample(T(2, 2), T(2, 3), left=False)),
            Error(RuntimeError, "matrices B", Sample(T(2, 2), T(2), left=False)),
            Error(RuntimeError, "2 dimensions", Sample(T(2, 2), T())),
            Error(RuntimeError, "singular", Sample(SINGULAR, T(2))),
            Error(RuntimeError, "pivot 1 of matrix 0", Sample(T(1, 2, 2, low=0, high=0), T(2))),
            Error(
                NotImplementedError,
                "float32",
                Sample(T(2, 2, dtype="int64"), T(2, dtype="int64")),
            ),
        ],
    ),
    Op(
        "linalg.solve_ex",
        [Sample(T(3, 3), T(3, 2)), Sample(T(2, 3, 3), T(2, 3, 1))],
        dtypes="full complex",
        tolerance=1000,
        errors=[Error(RuntimeError, "singular", Sample(SINGULAR, T(2), check_errors=True))],
    ),
    Op(
        "linalg.tensorinv",
        [Sample(T(6, 2, 3), ind=1), Sample(T(2, 3, 6)), Sample(T(2, 2, 4))],
        dtypes="full complex",
        tolerance=1000,
        layouts=False,
        errors=[
            Error(RuntimeError, "positive ind", Sample(T(2, 2), ind=0)),
            Error(RuntimeError, "as many elements", Sample(T(2, 3, 5))),
            Error(RuntimeError, "singular", Sample(T(2, 2, low=0, high=0), ind=1)),
        ],
    ),
    Op(
        "linalg.tensorsolve",
        [
            Sample(T(2, 3, 6), T(2, 3)),
            Sample(T(2, 6, 3), T(2, 3), dims=(1,)),
            Sample(T(4, 2, 2), T(4)),
        ],
        dtypes="full complex",
        tolerance=1000,
        layouts=False,
        errors=[
            Error(RuntimeError, "as many equations", Sample(T(2, 3, 6), T(2, 2))),
            Error(RuntimeError, "singular", Sample(SINGULAR, T(2))),
        ],
    ),
]
