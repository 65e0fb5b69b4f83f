"""Samples of operators of src/ops/linalg that `ops.aten` has under names of their own."""

from samples.common import Op, Sample, T, aten

SQUARE = T(3, 3)
# Gradients, in which PyTorch takes the other triangle for given: tests/python/linalg.
DEFINITE = [
    Sample(T(3, 3, definite=True, grad=False)),
    Sample(T(2, 3, 3, definite=True, grad=False), upper=True),
]

OPS = [
    aten("linalg_matmul", [Sample(T(2, 3), T(3, 4)), Sample(T(5, 2, 3), T(3))]),
    *[
        Op(
            f"linalg.{name}",
            DEFINITE,
            dtypes="full complex",
            grad=False,
            layouts=False,
            tolerance=20,
        )
        for name in ("cholesky", "cholesky_ex")
    ],
    aten(
        "_lu_with_info",
        [Sample(SQUARE), Sample(T(2, 3, 3))],
        dtypes="full complex",
        tolerance=8,
        layouts=False,
        beyond_torch="it warns that the operator is old",
    ),
    aten(
        "_linalg_check_errors",
        [Sample(T(3, dtype="int32", low=0, high=0), "op", is_matrix=False)],
        dtypes="float32",
        grad=False,
        layouts=False,
        beyond_torch="it asks for contiguous numbers",
    ),
]
