"""Samples of views: parts, diagonals, windows, dimensions moved, merged and split."""

import numpy as np
from samples.common import Error, Op, Sample, T

ALL = "float complex int bool"

OPS = [
    Op(
        "narrow",
        dtypes=ALL,
        samples=[
            Sample(T(3, 4), 1, 1, 2),
            Sample(T(3, 4, layout="transposed"), 0, -2, 1),
            Sample(T(3), 0, 3, 0),
        ],
        errors=[
            Error(RuntimeError, "exceeds dimension size", Sample(T(3), 0, 2, 2)),
            Error(IndexError, "start out of range", Sample(T(3), 0, -4, 1)),
        ],
    ),
    Op(
        "chunk",
        dtypes=ALL,
        samples=[
            Sample(T(7, 2), 3),
            Sample(T(2, 5, layout="transposed"), 2, 1),
            Sample(T(0, 2), 3),
        ],
        errors=[Error(RuntimeError, "chunks must be positive", Sample(T(3), 0))],
    ),
    Op(
        "tensor_split",
        dtypes=ALL,
        samples=[
            Sample(T(7, 2), 3),
            Sample(T(7), (1, 3, 9)),
            Sample(T(2, 5, layout="transposed"), 2, 1),
        ],
        reference=lambda x, n, d=0: np.array_split(x, n, d),
    ),
    Op(
        "hsplit",
        dtypes=ALL,
        samples=[Sample(T(2, 4), 2), Sample(T(4), (1, 3))],
        reference=np.hsplit,
    ),
    Op(
        "vsplit",
        dtypes=ALL,
        samples=[Sample(T(4, 2), 2), Sample(T(4, 2), (1, 3))],
        reference=np.vsplit,
    ),
    Op("dsplit", dtypes=ALL, samples=[Sample(T(1, 2, 4), 2)], reference=np.dsplit),
    Op(
        "movedim",
        dtypes=ALL,
        samples=[Sample(T(2, 3, 4), 0, -1), Sample(T(2, 3, 4), (0, 1), (2, 0))],
        reference=np.moveaxis,
    ),
    Op(
        "t",
        dtypes=ALL,
        samples=[Sample(T(2, 3)), Sample(T(3)), Sample(T())],
        reference=lambda x: x.T,
        inplace=False,
    ),
    Op("adjoint", dtypes=ALL, samples=[Sample(T(2, 3)), Sample(T(2, 3, 4))]),
    Op(
        "flatten",
        dtypes=ALL,
        samples=[
            Sample(T(2, 3, 4), 1),
            Sample(T(2, 3, layout="transposed")),
            Sample(T()),
            Sample(T(2, 0, 3), 0, 1),
        ],
        errors=[
            Error(RuntimeError, "start_dim must not come after end_dim", Sample(T(2, 3), 1, 0))
        ],
    ),
    Op(
        "unflatten",
        dtypes=ALL,
        samples=[Sample(T(2, 6), 1, (2, -1)), Sample(T(6), 0, (3, 2))],
        errors=[
            Error(RuntimeError, "sizes must multiply to 6, the size of", Sample(T(6), 0, (4, 2)))
        ],
    ),
    Op(
        "broadcast_to",
        dtypes=ALL,
        samples=[Sample(T(3), (2, 3)), Sample(T(2, 1), (2, 4))],
        reference=np.broadcast_to,
    ),
    Op(
        "diagonal",
        dtypes=ALL,
        samples=[
            Sample(T(3, 4)),
            Sample(T(2, 3, 4, layout="transposed"), -1, 1, 2),
            Sample(T(3, 3), 7),
        ],
        reference=lambda x, o=0, a=0, b=1: np.diagonal(x, o, a, b)
        if o < 7
        else np.zeros(0, x.dtype),
        errors=[Error(RuntimeError, "cannot be identical", Sample(T(2, 2), 0, 0, 0))],
    ),
    Op("diagonal_scatter", dtypes=ALL, samples=[Sample(T(3, 4), T(3)), Sample(T(3, 4), T(3), 1)]),
    Op(
        "Tensor.unfold",
        dtypes=ALL,
        samples=[
            Sample(T(7), 0, 3, 2),
            Sample(T(3, 5, layout="transposed"), 1, 2, 1),
            Sample(T(), 0, 1, 1),
        ],
        errors=[Error(RuntimeError, "size must be at most 3, that of", Sample(T(3), 0, 5, 1))],
    ),
    Op("permute_copy", dtypes=ALL, samples=[Sample(T(2, 3, 4), (2, 0, 1))]),
    Op(
        "select_copy",
        dtypes=ALL,
        samples=[Sample(T(2, 3), 1, -1)],
        beyond_torch="complex results have no gradient",
    ),
    Op("unbind_copy", dtypes="float", out=False, samples=[Sample(T(2, 3), 1)]),
    Op("split_copy", dtypes="float", out=False, samples=[Sample(T(5, 2), 2)]),
    Op("split_with_sizes_copy", dtypes="float", out=False, samples=[Sample(T(5, 2), [2, 3])]),
]
