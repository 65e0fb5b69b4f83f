"""Samples of src/ops/linalg/triangular.cpp."""

import numpy as np
from samples.common import Error, Op, Sample, T


def _solve(A, B, upper, left=True, unitriangular=False):
    n = A.shape[-1]
    A = np.triu(A) if upper else np.tril(A)
    if unitriangular:
        A = A - A * np.eye(n) + np.eye(n)
    if left:
        return np.linalg.solve(A, np.broadcast_to(B, (*A.shape[:-2], *B.shape[-2:])))
    return np.linalg.solve(A.swapaxes(-1, -2), B.swapaxes(-1, -2)).swapaxes(-1, -2)


def _away_from_zero(*shape, **options):
    return T(*shape, low=0.8, high=2, **options)


OPS = [
    Op(
        "linalg.solve_triangular",
        [
            Sample(_away_from_zero(3, 3), T(3, 2), upper=True),
            Sample(_away_from_zero(3, 3), T(3, 2), upper=False),
            Sample(_away_from_zero(3, 3), T(2, 3), upper=False, left=False),
            Sample(_away_from_zero(3, 3), T(2, 3), upper=True, left=False),
            Sample(_away_from_zero(3, 3), T(3, 1), upper=True, unitriangular=True),
            Sample(_away_from_zero(2, 4, 4), T(2, 4, 3), upper=False),
            Sample(_away_from_zero(2, 3, 3), T(3, 2), upper=True),
            Sample(T(0, 0), T(0, 2), upper=True),
            Sample(_away_from_zero(3, 3), T(3, 0), upper=True),
        ],
        reference=_solve,
        dtypes="full complex",
        tolerance=50,
        errors=[
            Error(RuntimeError, "square", Sample(T(2, 3), T(2, 2), upper=True)),
            Error(RuntimeError, "2 dimensions", Sample(T(2, 2), T(2), upper=True)),
            Error(RuntimeError, "AX = B", Sample(T(2, 2), T(3, 2), upper=True)),
            Error(RuntimeError, "XA = B", Sample(T(2, 2), T(2, 3), upper=True, left=False)),
            Error(
                NotImplementedError,
                "float32",
                Sample(T(2, 2, dtype="int64"), T(2, 2, dtype="int64"), upper=True),
            ),
        ],
    ),
    Op(
        "triangular_solve",
        [
            Sample(T(3, 2), _away_from_zero(3, 3)),
            Sample(T(3, 2), _away_from_zero(2, 3, 3), upper=False),
            Sample(T(3, 2), _away_from_zero(3, 3), transpose=True),
            Sample(T(3, 2), _away_from_zero(3, 3), unitriangular=True),
        ],
        dtypes="full complex",
        tolerance=50,
        out=False,
        errors=[Error(RuntimeError, "2 dimensions", Sample(T(2), T(2, 2)))],
    ),
    Op(
        "cholesky_solve",
        [
            Sample(T(3, 2), _away_from_zero(3, 3)),
            Sample(T(3, 2), _away_from_zero(3, 3), upper=True),
            Sample(T(2, 3, 1), _away_from_zero(3, 3)),
        ],
        dtypes="full complex",
        # PyTorch's gradient of a factor is the whole matrix: tests/python/linalg/test_cholesky.py.
        grad=False,
        tolerance=100,
        errors=[
            Error(RuntimeError, "2 dimensions", Sample(T(2), T(2, 2))),
            Error(RuntimeError, "fit", Sample(T(3, 2), T(2, 2))),
        ],
    ),
    Op(
        "cholesky_inverse",
        [
            Sample(_away_from_zero(3, 3, dtype="float64")),
            Sample(_away_from_zero(3, 3, dtype="float64"), upper=True),
            Sample(_away_from_zero(2, 3, 3, dtype="float64")),
            Sample(T(0, 0, dtype="float64")),
        ],
        dtypes="float64",
        # LAPACK takes the diagonal of a complex factor for real: of one dtype alone.
        grad=False,
        tolerance=100,
        errors=[
            Error(RuntimeError, "square", Sample(T(2, 3))),
            Error(RuntimeError, "pivot 1 is zero", Sample(T(2, 2, low=0, high=0))),
        ],
    ),
]
