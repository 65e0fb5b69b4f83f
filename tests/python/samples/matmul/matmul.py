"""Samples of src/ops/matmul/matmul.cpp."""

import math

import numpy as np
from samples.common import Error, Op, Sample, T


def _addmm(c, a, b, *, beta=1, alpha=1):
    return beta * c + alpha * (a @ b)


def _relu_addmm(c, a, b, *, beta=1, alpha=1):
    return np.maximum(_addmm(c, a, b, beta=beta, alpha=alpha), 0)


def _gelu_addmm(c, a, b, *, beta=1, alpha=1, use_gelu):
    y = _addmm(c, a, b, beta=beta, alpha=alpha)
    return y * (1 + np.vectorize(math.erf, otypes=[float])(y / math.sqrt(2))) / 2


A, B, C = T(3, 4), T(4, 5), T(3, 5)
KINDS = "float complex int"
# Of products that are added to something.
ADDED = [
    Sample(C, A, B),
    Sample(T(5), A, B, beta=2, alpha=3),
    Sample(T(3, 1), A, B, beta=0),
    Sample(T(), T(3, 4, layout="transposed"), B),
    Sample(C, T(3, 0), T(0, 5), beta=2),
]

OPS = [
    Op(
        "mm",
        [
            Sample(A, B),
            Sample(T(3, 4, layout="transposed"), T(4, 5, layout="strided")),
            Sample(T(3, 0), T(0, 5)),
            Sample(T(0, 4), B),
            Sample(T(1, 4), T(4, 1)),
        ],
        reference=np.matmul,
        dtypes=KINDS,
        errors=[
            Error(RuntimeError, "cannot be multiplied", Sample(A, C)),
            Error(RuntimeError, "matrix", Sample(T(3), B)),
            Error(RuntimeError, "dtype", Sample(A, T(4, 5, dtype="int64"))),
        ],
    ),
    Op(
        "addmm",
        ADDED,
        reference=_addmm,
        dtypes=KINDS,
        errors=[
            Error(RuntimeError, "expanded", Sample(T(4), A, B)),
            Error(RuntimeError, "multiplied", Sample(C, A, C)),
        ],
    ),
    Op(
        "_addmm_activation",
        [*ADDED, Sample(T(5), T(0, 4), B)],
        reference=_relu_addmm,
        dtypes="float int",
        grad=False,
        errors=[
            Error(RuntimeError, "expanded", Sample(T(4), A, B)),
            Error(RuntimeError, "multiplied", Sample(C, A, C)),
            Error(RuntimeError, "matrix", Sample(C, T(4), B)),
            Error(RuntimeError, "dtype", Sample(T(5, dtype="int64"), A, B)),
        ],
    ),
    Op(
        "_addmm_activation",
        [
            Sample(C, A, B, use_gelu=True),
            Sample(T(5), A, B, beta=2, alpha=3, use_gelu=True),
            Sample(T(3, 1), T(3, 4, layout="transposed"), B, beta=0, use_gelu=True),
            Sample(C, T(3, 0), T(0, 5), use_gelu=True),
        ],
        reference=_gelu_addmm,
        grad=False,
        errors=[
            Error(
                NotImplementedError,
                "GeluKernelImpl",
                Sample(*(T(2, 2, dtype="int64") for _ in range(3)), use_gelu=True),
            ),
            Error(
                NotImplementedError,
                "clamp is not supported for complex types",
                Sample(*(T(2, 2, dtype="complex64") for _ in range(3))),
            ),
        ],
    ),
    Op(
        "mv",
        [
            Sample(A, T(4)),
            Sample(T(3, 4, layout="transposed"), T(4, layout="strided")),
            Sample(T(3, 0), T(0)),
        ],
        reference=np.matmul,
        dtypes=KINDS,
        errors=[Error(RuntimeError, "size mismatch", Sample(A, T(3)))],
    ),
    Op(
        "addmv",
        [Sample(T(3), A, T(4)), Sample(T(1), A, T(4), beta=2, alpha=3), Sample(T(), A, T(4))],
        reference=_addmm,
        dtypes=KINDS,
    ),
    Op(
        "dot",
        [Sample(T(4), T(4)), Sample(T(4, layout="strided"), T(4)), Sample(T(0), T(0))],
        reference=np.dot,
        dtypes=KINDS,
        errors=[
            Error(RuntimeError, "1D tensors", Sample(A, B)),
            Error(RuntimeError, "size", Sample(T(3), T(4))),
        ],
    ),
    Op("vdot", [Sample(T(4), T(4)), Sample(T(0), T(0))], reference=np.vdot, dtypes=KINDS),
    Op(
        "bmm",
        [
            Sample(T(2, 3, 4), T(2, 4, 5)),
            Sample(T(2, 3, 4, layout="transposed"), T(2, 4, 1)),
            Sample(T(0, 3, 4), T(0, 4, 5)),
            Sample(T(2, 3, 0), T(2, 0, 5)),
        ],
        reference=np.matmul,
        dtypes=KINDS,
        errors=[
            Error(
                RuntimeError,
                "batch2 must start with sizes [2, 4] to",
                Sample(T(2, 3, 4), T(3, 4, 5)),
            ),
            Error(RuntimeError, "3D", Sample(A, T(2, 4, 5))),
        ],
    ),
    Op(
        "baddbmm",
        [
            Sample(T(2, 3, 5), T(2, 3, 4), T(2, 4, 5)),
            Sample(T(5), T(2, 3, 4), T(2, 4, 5), beta=2, alpha=3),
            Sample(T(3, 1), T(2, 3, 4), T(2, 4, 5), beta=0),
        ],
        reference=_addmm,
        dtypes=KINDS,
    ),
    Op(
        "addbmm",
        [Sample(C, T(2, 3, 4), T(2, 4, 5)), Sample(T(5), T(2, 3, 4), T(2, 4, 5), beta=2, alpha=3)],
        reference=lambda c, a, b, beta=1, alpha=1: beta * c + alpha * (a @ b).sum(0),
        dtypes=KINDS,
        tolerance=3,
    ),
    Op(
        "outer",
        [Sample(T(3), T(4)), Sample(T(0), T(4))],
        reference=np.outer,
        dtypes=KINDS + " bool",
        errors=[Error(RuntimeError, "self and vec2 must have 1 dimension", Sample(A, T(4)))],
    ),
    Op(
        "addr",
        [Sample(C, T(3), T(5)), Sample(T(5), T(3), T(5), beta=2, alpha=3)],
        reference=lambda c, a, b, beta=1, alpha=1: beta * c + alpha * np.outer(a, b),
        dtypes=KINDS,
    ),
    Op(
        "matmul",
        [
            Sample(A, B),
            Sample(T(4), T(4)),
            Sample(A, T(4)),
            Sample(T(3), A),
            Sample(T(2, 3, 4), B),
            Sample(T(2, 3, 4), T(4)),
            Sample(T(4), T(2, 4, 5)),
            Sample(T(2, 1, 3, 4), T(5, 4, 2)),
            Sample(A, T(2, 4, 5)),
            Sample(T(2, 0, 4), B),
            Sample(T(2, 3, 0), T(2, 0, 5)),
            Sample(T(2, 3, 4, layout="transposed"), T(2, 4, 5, layout="strided")),
        ],
        reference=np.matmul,
        dtypes=KINDS,
        errors=[
            Error(RuntimeError, "both arguments must have a dimension", Sample(T(), A)),
            Error(RuntimeError, "", Sample(T(2, 3, 4), T(3, 4, 5))),
        ],
    ),
    Op(
        "linalg.vecdot",
        [Sample(T(2, 3), T(2, 3)), Sample(T(2, 3), T(2, 3), dim=0), Sample(T(2, 1, 3), T(4, 3))],
        dtypes="float complex",
        errors=[
            Error(RuntimeError, "one dtype", Sample(T(3), T(3, dtype="float64"))),
            Error(NotImplementedError, "int64", Sample(T(3, dtype="int64"), T(3, dtype="int64"))),
        ],
    ),
    Op(
        "nn.functional.linear",
        [
            Sample(T(2, 4), T(5, 4), T(5)),
            Sample(T(4), T(5, 4), T(5)),
            Sample(T(2, 3, 4), T(5, 4), T(5)),
            Sample(T(2, 3, 4), T(5, 4)),
            Sample(T(0, 4), T(5, 4), T(5)),
            Sample(T(2, 4), T(4)),
        ],
        dtypes="float complex",
    ),
    Op(
        "inner",
        [
            Sample(A, T(5, 4)),
            Sample(T(4), T(4)),
            Sample(T(), A),
            Sample(T(2, 3, 4), T(4)),
            Sample(T(2, 0), T(3, 0)),
        ],
        reference=np.inner,
        dtypes=KINDS,
        errors=[Error(RuntimeError, "the last sizes must be equal", Sample(A, B))],
    ),
    Op(
        "tensordot",
        [
            Sample(T(2, 3, 4), T(3, 4, 5)),
            Sample(T(2, 3, 4), T(4, 3), ([1, 2], [1, 0])),
            Sample(T(3), T(3), 1),
            Sample(T(2), T(3), 0),
        ],
        reference=lambda a, b, dims=2: np.tensordot(a, b, dims),
        dtypes=KINDS,
    ),
    Op(
        "kron",
        [
            Sample(T(2, 3), T(4, 2)),
            Sample(T(2), T(3, 4)),
            Sample(T(), T(2, 2)),
            Sample(T(2, 1, 3), T(2, 2)),
        ],
        reference=np.kron,
        dtypes=KINDS,
        beyond_torch="products of some strides are no view of its result",
    ),
]
