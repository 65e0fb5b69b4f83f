"""Samples of src/ops/linalg/linalg.cpp."""

import functools

import numpy as np
from samples.common import Error, Op, Sample, T


def _chain(*tensors):
    return functools.reduce(np.matmul, tensors)


OPS = [
    Op(
        "linalg.cross",
        [
            Sample(T(4, 3), T(4, 3)),
            Sample(T(4, 1, 3), T(1, 2, 3)),
            Sample(T(3, 4, layout="transposed"), T(3, 4), dim=0),
            Sample(T(0, 3), T(0, 3)),
        ],
        dtypes="float complex int",
        errors=[
            Error(RuntimeError, "length 3", Sample(T(4, 2), T(4, 2))),
            Error(RuntimeError, "inputs must have as many dimensions", Sample(T(4, 3), T(3))),
            Error(IndexError, "imension", Sample(T(4, 3), T(4, 3), dim=2)),
        ],
    ),
    Op(
        "cross",
        [Sample(T(4, 3), T(4, 3)), Sample(T(3, 4), T(3, 4)), Sample(T(3, 3), T(3, 3), 1)],
        dtypes="float complex int",
        errors=[Error(RuntimeError, "size 3", Sample(T(2, 4), T(2, 4)))],
    ),
    Op(
        "linalg.matrix_power",
        [Sample(T(3, 3), n) for n in (0, 1, 2, 3, 5, -1, -2)] + [Sample(T(2, 3, 3), 4)],
        reference=np.linalg.matrix_power,
        dtypes="full complex",
        layouts=False,
        gradgrad=False,
        tolerance=20,
        errors=[
            Error(RuntimeError, "square", Sample(T(2, 3), 2)),
            Error(RuntimeError, "2 dimensions", Sample(T(3), 2)),
        ],
    ),
    Op(
        "linalg.inv",
        [
            Sample(T(3, 3)),
            Sample(T(2, 4, 4)),
            Sample(T(3, 3, layout="transposed")),
            Sample(T(0, 0)),
            Sample(T(0, 2, 2)),
            Sample(T(1, 1)),
            Sample(T(20, 20)),
        ],
        reference=np.linalg.inv,
        dtypes="full complex",
        layouts=False,
        tolerance=50,
        errors=[
            Error(RuntimeError, "square", Sample(T(2, 3))),
            Error(RuntimeError, "2 dimensions", Sample(T(3))),
            Error(RuntimeError, "pivot 1 is zero", Sample(T(2, 2, low=0, high=0))),
            Error(RuntimeError, "of matrix 0", Sample(T(1, 2, 2, low=0, high=0))),
            Error(NotImplementedError, "complex", Sample(T(2, 2, dtype="int64"))),
        ],
    ),
    Op(
        "linalg.inv_ex",
        [Sample(T(3, 3)), Sample(T(2, 2, low=0, high=0)), Sample(T(2, 2, 2))],
        dtypes="full complex",
        tolerance=50,
        errors=[Error(RuntimeError, "singular", Sample(T(2, 2, low=0, high=0), check_errors=True))],
        grad=False,
    ),
    Op(
        "inverse",
        [Sample(T(3, 3)), Sample(T(2, 4, 4))],
        reference=np.linalg.inv,
        dtypes="full complex",
        layouts=False,
        tolerance=50,
    ),
    Op("matrix_power", [Sample(T(3, 3, low=-1, high=1), 3), Sample(T(2, 2), 7)], dtypes="full"),
    Op(
        "linalg.multi_dot",
        [
            Sample([T(2, 3), T(3, 4)]),
            Sample([T(3), T(3, 4), T(4)]),
            Sample([T(10, 2), T(2, 5), T(5, 3), T(3, 8)]),
            Sample([T(3), T(3)]),
        ],
        reference=lambda t: _chain(*t),
        dtypes="full complex",
        errors=[
            Error(RuntimeError, "at least 2", Sample([T(2, 3)])),
            Error(RuntimeError, "multiplied", Sample([T(2, 3), T(2, 3), T(3, 2)])),
            Error(RuntimeError, "2D", Sample([T(2, 3), T(3), T(3, 2)])),
        ],
    ),
    Op(
        "chain_matmul",
        [Sample(T(2, 3), T(3, 4), T(4, 5)), Sample(T(2, 3))],
        reference=_chain,
        dtypes="full",
    ),
]
