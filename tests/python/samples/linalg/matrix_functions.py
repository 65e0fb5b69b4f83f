"""Samples of src/ops/linalg/matrix_functions.cpp."""

from samples.common import Error, Op, Sample, T


def _exp_of(*shape, size=1.0, **options):
    return Sample(T(*shape, low=-size, high=size, **options))


OPS = [
    Op(
        "linalg.matrix_exp",
        [
            _exp_of(3, 3),
            _exp_of(2, 4, 4, size=4),
            _exp_of(3, 3, layout="transposed"),
            _exp_of(2, 2, size=1e-3),
            _exp_of(3, 3, size=0.05),
            _exp_of(1, 1),
            _exp_of(0, 0),
            _exp_of(0, 2, 2),
            _exp_of(17, 17, size=0.3),
        ],
        dtypes="full complex",
        out=False,  # PyTorch's function has no out=
        tolerance=50,
        errors=[
            Error(RuntimeError, "square", Sample(T(2, 3))),
            Error(RuntimeError, "2 dimensions", Sample(T(3))),
            Error(NotImplementedError, "int64", Sample(T(2, 2, dtype="int64"))),
        ],
    ),
    Op("matrix_exp", [_exp_of(3, 3), _exp_of(2, 2, 2)], dtypes="full complex", tolerance=50),
    Op(
        "linalg.matrix_sqrth",
        [
            # Larger ones must be positive definite: tests/python/linalg/test_matrix_functions.py.
            Sample(T(1, 1, low=0.5, high=3)),
            Sample(T(2, 1, 1, low=0.5, high=3)),
            Sample(T(0, 0)),
            Sample(T(0, 2, 2)),
            Sample(T(2, 0, 0)),
        ],
        dtypes="full complex",
        out=False,  # PyTorch's function has no out=
        layouts=False,
        tolerance=200,
        errors=[
            Error(RuntimeError, "square", Sample(T(2, 3))),
            Error(RuntimeError, "2 dimensions", Sample(T(3))),
            Error(NotImplementedError, "int64", Sample(T(2, 2, dtype="int64"))),
            Error(NotImplementedError, "float16", Sample(T(2, 2, dtype="float16"))),
        ],
    ),
]
