"""Distances between tensors and rows, norms of slices and matrices, slopes on a grid."""

import numpy as np
from samples.common import Error, Op, Sample, T

INF = float("inf")


def _cdist(a, b, p=2.0, compute_mode=None):
    return np.linalg.norm(a[..., :, None, :] - b[..., None, :, :], ord=p, axis=-1)


OPS = [
    Op(
        "dist",
        [
            Sample(T(3, 4), T(3, 4)),
            Sample(T(3, 1), T(4), 1),
            Sample(T(5), T(5), 3.5),
            Sample(T(5), T(5), INF),
            Sample(T(0), T(0)),
            Sample(T(), T()),
        ],
        dtypes="float complex",
        gradgrad=False,
        reference=lambda a, b, p=2: np.linalg.norm((a - b).ravel(), p) if (a - b).size else 0.0,
        errors=[Error(RuntimeError, "size", Sample(T(3), T(4)))],
    ),
    Op(
        "cdist",
        [Sample(T(3, 4), T(5, 4), p) for p in (0.0, 1.0, 1.5, 2.0, 3.0, INF)]
        + [
            Sample(T(2, 1, 3, 4), T(5, 6, 4)),
            Sample(T(30, 3), T(2, 3)),
            Sample(T(30, 3), T(4, 3), 2.0, "donot_use_mm_for_euclid_dist"),
            Sample(T(3, 4), T(5, 4), 2.0, "use_mm_for_euclid_dist"),
            Sample(T(0, 4), T(5, 4)),
            Sample(T(2, 20, layout="transposed"), T(3, 20)),
        ],
        dtypes="full",
        reference=_cdist,
        tolerance=20,
        errors=[
            Error(RuntimeError, "rows of one length", Sample(T(2, 3), T(2, 4))),
            Error(RuntimeError, "at least 2 dimensions", Sample(T(3), T(2, 3))),
            Error(RuntimeError, "must not be negative", Sample(T(2, 3), T(2, 3), -1.0)),
            Error(RuntimeError, "floating point", Sample(T(2, 3, dtype="int64"), T(2, 3))),
            Error(ValueError, "compute_mode", Sample(T(2, 3), T(2, 3), 2.0, "mm")),
        ],
    ),
    Op(
        "pdist",
        [Sample(T(4, 3), p) for p in (0.0, 1.0, 1.5, 2.0, 3.0, INF)]
        + [
            Sample(T(1, 3, grad=False)),
            Sample(T(0, 2, grad=False)),
            Sample(T(5, 9, layout="transposed")),
        ],
        dtypes="full",
        gradgrad=False,
        tolerance=4,
        errors=[
            Error(RuntimeError, "a matrix", Sample(T(3))),
            Error(RuntimeError, "must not be negative", Sample(T(2, 3), -1.0)),
        ],
    ),
    Op(
        "renorm",
        [
            Sample(T(3, 4), 2, 0, 1.0),
            Sample(T(3, 4), 1, 1, 2.0),
            Sample(T(2, 3, 4, layout="transposed"), 1.5, -1, 0.5),
            Sample(T(3, 4), INF, 0, 100),
            Sample(T(3, 4), 2, 0, 0),
        ],
        dtypes="float complex",
        inplace=False,
        tolerance=4,
        errors=[
            Error(RuntimeError, "at least 2 dimensions", Sample(T(3), 2, 0, 1)),
            Error(RuntimeError, "must be positive", Sample(T(2, 3), -1, 0, 1)),
            Error(RuntimeError, "maxnorm", Sample(T(2, 3), 2, 0, -1)),
            Error(IndexError, "", Sample(T(2, 3), 2, 5, 1)),
        ],
    ),
    Op(
        "norm_except_dim",
        [
            Sample(T(2, 3)),
            Sample(T(2, 3, 4), 2, 2),
            Sample(T(2, 3), 1, -1),
            Sample(T(2, 3), 2, 1),
            Sample(T(2, 3, 4), 2, 1),
            Sample(T(2, 3, 4), 2, -2),
        ],
        dtypes="full",
        errors=[Error(IndexError, "out of range", Sample(T(2, 3), 2, 9))],
    ),
    Op(
        "linalg.matrix_norm",
        [
            Sample(T(3, 4)),
            Sample(T(2, 3, 4), "fro", (0, 2)),
            Sample(T(3, 4), 1),
            Sample(T(3, 4), -1),
            Sample(T(2, 3, 4), INF, (0, 1)),
            Sample(T(2, 3, 4), -INF, keepdim=True),
            Sample(T(2, 3, 4), 1, (2, 0), True),
            Sample(T(3, 0), 1),
            Sample(T(2, 0, 3), INF),
        ],
        dtypes="float complex",
        errors=[
            Error(RuntimeError, "at least 2 dimensions", Sample(T(3))),
            Error(RuntimeError, "two dimensions", Sample(T(2, 3), "fro", (0,))),
            Error(RuntimeError, "different", Sample(T(2, 3), 1, (0, 0))),
            Error(RuntimeError, "ord must be", Sample(T(2, 3), 3)),
            Error(RuntimeError, "ord must be", Sample(T(2, 3), "frob")),
        ],
    ),
    Op(
        "frobenius_norm",
        [
            Sample(T(2, 3), (0, 1)),
            Sample(T(2, 3), 0),
            Sample(T(2, 3, 4), (0, 1), True),
            Sample(T(2, 3), ()),
        ],
        dtypes="float complex",
        beyond_torch="its warning that it is deprecated counts as an error",
        errors=[Error(RuntimeError, "at most two", Sample(T(2, 3, 4), (0, 1, 2)))],
    ),
    Op(
        "linalg.norm",
        [
            Sample(T(3, 4)),
            Sample(T(5), 3),
            Sample(T(3, 4), 1),
            Sample(T(3, 4), "fro"),
            Sample(T(2, 3, 4)),
            Sample(T(2, 3, 4), 1, 1),
            Sample(T(2, 3, 4), INF, (0, 2), True),
            Sample(T(2, 3, 4), keepdim=True),
            Sample(T(3), dtype="float64"),
        ],
        dtypes="full complex",
        errors=[
            Error(RuntimeError, "1 or 2 dimensions", Sample(T(2, 3, 4), 1)),
            Error(RuntimeError, "one or two dimensions", Sample(T(2, 3, 4), 1, (0, 1, 2))),
        ],
    ),
    Op(
        "gradient",
        [
            Sample(T(5)),
            Sample(T(4, 3)),
            Sample(T(4, 3, layout="transposed"), dim=0),
            Sample(T(4, 5), dim=(1, 0)),
            Sample(T(4, 5), spacing=0.5),
            Sample(T(4, 5), spacing=2.0, dim=(0,)),
            Sample(T(4, 5), spacing=[0.5, 2.0]),
            Sample(T(4, 5), spacing=[0.5], dim=1),
            Sample(
                T(4, 5),
                spacing=[
                    T(4, low=0, high=9, unique=True, grad=False),
                    T(5, low=0, high=9, unique=True, grad=False),
                ],
            ),
            Sample(
                T(4, 5), spacing=[T(5, low=0, high=9, unique=True, grad=False)], dim=1, edge_order=2
            ),
            Sample(T(4, 5), edge_order=2),
            Sample(T(2, 3)),
        ],
        dtypes="full complex",
        tolerance=8,
        errors=[
            Error(RuntimeError, "edge_order", Sample(T(4), edge_order=3)),
            Error(RuntimeError, "at least 2 points", Sample(T(1))),
            Error(RuntimeError, "named twice", Sample(T(3, 3), dim=(0, 0))),
            Error(RuntimeError, "one for each", Sample(T(3, 3), spacing=[1.0, 2.0, 3.0])),
            Error(NotImplementedError, "uint8", Sample(T(3, dtype="uint8", low=0))),
        ],
    ),
]
