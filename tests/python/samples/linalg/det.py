"""Samples of src/ops/linalg/det.cpp."""

import numpy as np
from samples.common import Error, Op, Sample, T

MATRICES = [
    Sample(T(3, 3)),
    Sample(T(2, 4, 4)),
    Sample(T(2, 1, 5, 5)),
    Sample(T(3, 3, layout="transposed")),
    Sample(T(1, 1)),
    Sample(T(0, 0)),
    Sample(T(0, 3, 3)),
    Sample(T(10, 10)),
]
WRONG = [
    Error(RuntimeError, "square", Sample(T(2, 3))),
    Error(RuntimeError, "2 dimensions", Sample(T(2))),
    Error(NotImplementedError, "float32", Sample(T(2, 2, dtype="int64"))),
]


def _logdet(A):
    sign, logarithm = np.linalg.slogdet(A)
    if np.iscomplexobj(A):
        return np.log(sign) + logarithm
    return np.where(sign == -1, np.nan, logarithm)


OPS = [
    Op(
        name,
        MATRICES,
        reference=reference,
        dtypes="full complex",
        tolerance=500,
        errors=WRONG,
    )
    for name, reference in {
        "linalg.det": np.linalg.det,
        "det": np.linalg.det,
        "linalg.slogdet": np.linalg.slogdet,
        "slogdet": np.linalg.slogdet,
    }.items()
]
# The logarithm of a negative determinant has no gradient.
OPS.append(
    Op(
        "logdet",
        [Sample(T(2, 3, 3, grad=False)), Sample(T(2, 1, 1, low=0.5)), Sample(T(0, 0))],
        reference=_logdet,
        dtypes="full complex",
        tolerance=500,
        errors=WRONG,
    )
)
