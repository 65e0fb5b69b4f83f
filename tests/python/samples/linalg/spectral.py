"""Samples of src/ops/linalg/eigen.cpp, svd.cpp and pinv.cpp.

Vectors are given up to a sign or a phase, so that of the decompositions themselves the geometry
alone is compared here; tests/python/linalg/test_spectral.py looks at what they are equal to.
"""

import numpy as np
from samples.common import Error, Op, Sample, T

SQUARE_ERRORS = [
    Error(RuntimeError, "square", Sample(T(2, 3))),
    Error(RuntimeError, "2 dimensions", Sample(T(3))),
]
NO_INTEGERS = Error(NotImplementedError, "int64", Sample(T(2, 2, dtype="int64")))
SQUARE = [
    Sample(T(3, 3)),
    Sample(T(2, 4, 4)),
    Sample(T(3, 3, layout="transposed")),
    Sample(T(1, 1)),
    Sample(T(0, 0)),
    Sample(T(0, 2, 2)),
    Sample(T(2, 0, 0)),
]
ANY = [
    Sample(T(3, 3)),
    Sample(T(4, 3)),
    Sample(T(2, 3, 4)),
    Sample(T(3, 4, layout="transposed")),
    Sample(T(0, 3)),
    Sample(T(2, 3, 0)),
    Sample(T(0, 3, 2)),
]


def with_(samples, **options):
    return [Sample(*s.args, **s.kwargs, **options) for s in samples]


def _constant(*shape):
    """A matrix of which small values are cut off, or half is read: the formula holds for others."""
    return T(*shape, grad=False)


OPS = [
    Op(
        "linalg.eigh",
        [*SQUARE, Sample(T(3, 3), "U"), Sample(T(3, 3), UPLO="l")],
        dtypes="full complex",
        nondeterministic=True,
        errors=[
            *SQUARE_ERRORS,
            NO_INTEGERS,
            Error(RuntimeError, "'L' or 'U'", Sample(T(2, 2), "X")),
        ],
    ),
    Op(
        "linalg.eigvalsh",
        [*SQUARE, Sample(T(3, 3), "U")],
        reference=lambda a, UPLO="L": np.linalg.eigvalsh(a, UPLO),
        dtypes="full complex",
        grad=False,  # of matrices that are not Hermitian it is that of no function
        layouts=False,
        tolerance=50,
        errors=[*SQUARE_ERRORS, NO_INTEGERS],
    ),
    Op(
        "linalg.eig",
        SQUARE,
        dtypes="full complex",
        nondeterministic=True,
        errors=[
            *SQUARE_ERRORS,
            Error(RuntimeError, "int64", Sample(T(2, 2, dtype="int64"))),
        ],
    ),
    Op(
        "linalg.eigvals",
        SQUARE,
        dtypes="full complex",
        nondeterministic=True,  # of their order
        errors=SQUARE_ERRORS,
    ),
    Op(
        "linalg.svd",
        [*ANY, *with_(ANY, full_matrices=False)],
        dtypes="full complex",
        nondeterministic=True,
        errors=[
            Error(RuntimeError, "2 dimensions", Sample(T(3))),
            Error(RuntimeError, "driver", Sample(T(2, 2), driver="gesvd")),
            NO_INTEGERS,
        ],
    ),
    Op(
        "svd",
        [*ANY, *with_(ANY, some=False), *with_(ANY[:4], compute_uv=False)],
        dtypes="full complex",
        nondeterministic=True,
        errors=[Error(RuntimeError, "2 dimensions", Sample(T(3)))],
    ),
    Op(
        "linalg.svdvals",
        ANY,
        reference=lambda a: np.linalg.svd(a, compute_uv=False),
        dtypes="full complex",
        layouts=False,
        tolerance=50,
        errors=[Error(RuntimeError, "driver", Sample(T(2, 2), driver="gesvd")), NO_INTEGERS],
    ),
    Op(
        "linalg.polar",
        [Sample(T(3, 3)), Sample(T(2, 4, 3)), Sample(T(3, 0)), Sample(T(0, 2, 2))],
        dtypes="full complex",
        tolerance=200,
        errors=[
            Error(RuntimeError, "as many rows as columns", Sample(T(2, 3))),
            Error(RuntimeError, "2 dimensions", Sample(T(3))),
            NO_INTEGERS,
        ],
    ),
    Op(
        "linalg.pinv",
        [
            *ANY,
            Sample(_constant(3, 4), rtol=0.5),
            Sample(_constant(2, 3, 4), atol=1.0, rtol=0.1),
            Sample(_constant(2, 4, 3), rtol=T(2, low=0, high=1, grad=False, dtype="float64")),
            Sample(_constant(3, 3), 0.2),
            Sample(_constant(3, 3), hermitian=True),
        ],
        dtypes="full complex",
        layouts=False,
        tolerance=200,
        errors=[
            Error(RuntimeError, "2 dimensions", Sample(T(3))),
            Error(RuntimeError, "int64", Sample(T(2, 2, dtype="int64"))),
            Error(RuntimeError, "real", Sample(T(2, 2), atol=T(1, dtype="complex64"))),
        ],
    ),
    Op(
        "pinverse",
        [Sample(T(3, 4)), Sample(_constant(2, 3, 3), 0.2)],
        dtypes="full complex",
        layouts=False,
        tolerance=200,
    ),
    Op(
        "linalg.matrix_rank",
        [
            *ANY,
            Sample(T(3, 4), 1.0),
            Sample(T(3, 4), rtol=0.5),
            Sample(T(2, 3, 4), tol=T(2, low=0, high=3, dtype="float64")),
            Sample(T(2, 3, 4), atol=T(2, low=0, high=3, dtype="float64")),
            Sample(T(3, 3), hermitian=True),
        ],
        dtypes="full complex",
        grad=False,
        layouts=False,
        errors=[
            Error(RuntimeError, "2 dimensions", Sample(T(3))),
            Error(RuntimeError, "int64", Sample(T(2, 2, dtype="int64"))),
        ],
    ),
    Op(
        "linalg.cond",
        [
            *[Sample(T(3, 3), p) for p in (None, 2, -2, "nuc")],
            Sample(T(2, 3, 4)),
            Sample(T(0, 0), "fro"),
            Sample(T(3, 0)),
        ],
        dtypes="full complex",
        layouts=False,
        tolerance=200,
        errors=[
            Error(RuntimeError, "2 dimensions", Sample(T(3))),
            Error(RuntimeError, "square", Sample(T(2, 3), 1)),
            Error(ValueError, "p must be", Sample(T(2, 2), 3)),
            Error(ValueError, "p must be", Sample(T(2, 2), "x")),
        ],
    ),
    Op(
        "nuclear_norm",
        [Sample(T(3, 4)), Sample(T(2, 3, 4), True), Sample(T(2, 3, 4), (0, 2), True)],
        dtypes="full complex",
        layouts=False,
        tolerance=50,
        beyond_torch="its warning that it is deprecated counts as an error",
        errors=[Error(RuntimeError, "two dimensions", Sample(T(2, 3), (0,)))],
    ),
]
