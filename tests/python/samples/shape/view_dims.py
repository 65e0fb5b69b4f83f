"""Samples of views that move, add, merge and pick dimensions, and of joining."""

import numpy as np
from samples.common import Error, Op, Sample, T

ALL = "float complex int bool"
NUMBERS = "float complex int"


def both(name, **options):
    """The view and its copy: the same samples."""
    return [Op(name, **options), Op(f"{name}_copy", **options)]


OPS = [
    Op(
        "permute",
        dtypes=ALL,
        samples=[
            Sample(T(2, 3, 4), (2, 0, 1)),
            Sample(T(2, 3, layout="transposed"), (-1, 0)),
            Sample(T(), ()),
        ],
        reference=np.transpose,
        errors=[
            Error(RuntimeError, "", Sample(T(2, 3), (0,))),
            Error(RuntimeError, "", Sample(T(2, 3), (0, 0))),
            Error(IndexError, "range", Sample(T(2, 3), (0, 2))),
        ],
    ),
    *both(
        "transpose",
        dtypes=ALL,
        samples=[
            Sample(T(2, 3, 4), 0, -1),
            Sample(T(2, 3, layout="transposed"), 0, 1),
            Sample(T(), 0, -1),
        ],
        errors=[Error(IndexError, "range", Sample(T(2, 3), 0, 2))],
        inplace=False,
    ),
    Op(
        "swapaxes",
        dtypes="float32",
        samples=[Sample(T(2, 3, 4), 0, -1)],
        reference=np.swapaxes,
        inplace=False,
    ),
    *both(
        "expand",
        dtypes=ALL,
        samples=[
            Sample(T(3), (2, 3)),
            Sample(T(2, 1), (4, 2, 3)),
            Sample(T(2, 1, 3), (-1, 5, -1)),
            Sample(T(), (2,)),
        ],
        method=True,
    )[1:],
    Op(
        "Tensor.expand",
        dtypes=ALL,
        samples=[Sample(T(3), (2, 3)), Sample(T(2, 1, 3), (-1, 5, -1)), Sample(T(1), (0,))],
        errors=[
            Error(RuntimeError, "", Sample(T(3), (2, 4))),
            Error(RuntimeError, "", Sample(T(2, 3), (3,))),
        ],
    ),
    Op("Tensor.expand_as", dtypes="float32", samples=[Sample(T(3), T(2, 3, grad=False))]),
    *both(
        "squeeze",
        dtypes=ALL,
        samples=[
            Sample(T(2, 1, 3, 1)),
            Sample(T(2, 1, 3), 1),
            Sample(T(2, 1, 1), (1, 2)),
            Sample(T(2, 3), 0),
            Sample(T()),
        ],
        errors=[Error(IndexError, "range", Sample(T(2, 3), 2))],
        inplace=False,
    ),
    *both(
        "unsqueeze",
        dtypes=ALL,
        samples=[Sample(T(2, 3), 0), Sample(T(2, 3, layout="transposed"), -1), Sample(T(), 0)],
        errors=[Error(IndexError, "range", Sample(T(2, 3), 4))],
        inplace=False,
    ),
    *both(
        "select",
        dtypes="float32 int64",
        samples=[Sample(T(2, 3), 1, -1), Sample(T(2, 3, layout="transposed"), 0, 1)],
        errors=[Error(IndexError, "out of range", Sample(T(2, 3), 0, 2))],
    )[:1],
    *both(
        "unbind",
        dtypes=ALL,
        samples=[Sample(T(2, 3)), Sample(T(2, 3, layout="transposed"), -1), Sample(T(2, 0), 0)],
    )[:1],
    Op(
        "split",
        dtypes=ALL,
        samples=[
            Sample(T(5, 2), 2),
            Sample(T(5, 2), [1, 4]),
            Sample(T(2, 6, layout="transposed"), 4, -1),
            Sample(T(0, 2), 1),
        ],
        errors=[Error(RuntimeError, "must sum", Sample(T(5), [1, 2]))],
    ),
    Op(
        "split_with_sizes",
        dtypes="float32",
        samples=[Sample(T(5, 2), [1, 4]), Sample(T(2, 5), [2, 3], -1)],
    ),
    Op("unsafe_split", dtypes="float32", samples=[Sample(T(5, 2), 2)]),
    Op("unsafe_chunk", dtypes="float32", samples=[Sample(T(5, 2), 2)]),
    Op("unsafe_split_with_sizes", dtypes="float32", samples=[Sample(T(5, 2), [1, 4])]),
    Op(
        "reshape",
        dtypes=ALL,
        samples=[
            Sample(T(2, 6), (3, -1)),
            Sample(T(2, 6, layout="transposed"), (4, 3)),
            Sample(T(2, 6, layout="transposed"), (2, 3, 2, 1)),
            Sample(T(), (1, 1)),
            Sample(T(0, 3), (3, 0)),
        ],
        reference=np.reshape,
        errors=[
            Error(RuntimeError, "invalid for input", Sample(T(2, 3), (4, 2))),
            Error(RuntimeError, "", Sample(T(2, 3), (-1, -1))),
            Error(RuntimeError, "", Sample(T(0, 3), (-1, 0))),
        ],
    ),
    Op("Tensor.reshape_as", dtypes="float32", samples=[Sample(T(2, 6), T(3, 4, grad=False))]),
    Op(
        "Tensor.view",
        dtypes=ALL,
        samples=[Sample(T(2, 6), (3, -1)), Sample(T(2, 6), (12,)), Sample(T(), (1,))],
        layouts=False,
        errors=[Error(RuntimeError, "not compatible", Sample(T(2, 3, layout="transposed"), (6,)))],
    ),
    Op(
        "Tensor.view_as",
        dtypes="float32",
        samples=[Sample(T(2, 6), T(3, 4, grad=False))],
        layouts=False,
    ),
    Op("view_copy", dtypes="float32", samples=[Sample(T(2, 6), (3, -1))], layouts=False),
    Op(
        "ravel",
        dtypes=ALL,
        samples=[Sample(T(2, 3)), Sample(T(2, 3, layout="transposed")), Sample(T())],
        reference=np.ravel,
    ),
    Op("t_copy", dtypes="float32", samples=[Sample(T(2, 3)), Sample(T(3))]),
    Op(
        "narrow_copy",
        dtypes="float32 int64",
        samples=[Sample(T(3, 4), 1, 1, 2), Sample(T(3, 4, layout="transposed"), 0, -2, 1)],
    ),
    Op("slice_copy", dtypes="float32", samples=[Sample(T(5, 2), 0, 1, 4, 2), Sample(T(5, 2))]),
    Op("diagonal_copy", dtypes="float32", samples=[Sample(T(3, 4)), Sample(T(2, 3, 4), -1, 1, 2)]),
    Op("unfold_copy", dtypes="float32", samples=[Sample(T(7), 0, 3, 2)]),
    Op(
        "alias_copy",
        dtypes="float32",
        samples=[Sample(T(2, 3)), Sample(T(2, 3, layout="transposed"))],
    ),
    Op(
        "as_strided",
        dtypes="float32 int64",
        samples=[
            Sample(T(12), (3, 2), (4, 1), 1),
            Sample(T(3, 4), (2, 2), (1, 2)),
            Sample(T(4), (), ()),
        ],
        layouts=False,
        inplace=False,
        errors=[
            Error(RuntimeError, "", Sample(T(4), (3,), (1, 1))),
            Error(RuntimeError, "", Sample(T(4), (5,), (1,))),
        ],
    ),
    Op(
        "as_strided_copy",
        dtypes="float32",
        samples=[Sample(T(12), (3, 2), (4, 1), 1)],
        layouts=False,
    ),
    Op(
        "select_scatter",
        dtypes=NUMBERS,
        samples=[Sample(T(2, 3), T(2), 1, -1), Sample(T(2, 3, layout="transposed"), T(3), 0, 0)],
        beyond_torch="complex results have no gradient",
    ),
    Op(
        "slice_scatter",
        dtypes=NUMBERS,
        samples=[
            Sample(T(5, 3), T(2, 3), 0, 1, 5, 2),
            Sample(T(3, 5, layout="transposed"), T(3, 2), 1, 3),
        ],
        beyond_torch="complex results have no gradient",
    ),
    Op(
        "real",
        dtypes="complex",
        samples=[Sample(T(2, 3)), Sample(T(2, 3, layout="transposed"))],
        reference=np.real,
        method=False,
    ),
    Op(
        "imag",
        dtypes="complex",
        samples=[Sample(T(2, 3)), Sample(T(2, 3, layout="transposed"))],
        reference=np.imag,
        method=False,
    ),
    Op(
        "view_as_real",
        dtypes="complex",
        samples=[Sample(T(2, 3))],
        reference=lambda z: np.stack([z.real, z.imag], -1),
    ),
    Op(
        "view_as_complex",
        dtypes="full",
        samples=[Sample(T(3, 2))],
        reference=lambda x: x[..., 0] + 1j * x[..., 1],
        layouts=False,
        errors=[Error(RuntimeError, "size 2", Sample(T(3, 3)))],
    ),
    Op("conj", dtypes="complex full", samples=[Sample(T(2, 3)), Sample(T())], reference=np.conj),
    Op("resolve_conj", dtypes="complex full", samples=[Sample(T(2, 3))]),
    Op("resolve_neg", dtypes="complex full", samples=[Sample(T(2, 3))]),
    Op(
        "cat",
        dtypes=ALL,
        samples=[
            Sample([T(2, 3), T(1, 3)]),
            Sample([T(2, 3), T(2, 1)], -1),
            Sample([T(2, 3, layout="transposed"), T(2, 3)], 1),
            Sample([T(0), T(2)]),
            Sample([T(2, 0), T(2, 3)], 1),
            Sample([T(3)]),
        ],
        reference=lambda x, d=0: np.concatenate(x, d),
        errors=[
            Error(RuntimeError, "Sizes of tensors must match", Sample([T(2, 3), T(2, 4)])),
            Error(RuntimeError, "zero-dimensional", Sample([T(), T()])),
            Error((RuntimeError, ValueError), "", Sample([])),
        ],
    ),
    *[
        Op(
            f"atleast_{n}d",
            dtypes="float32",
            samples=[Sample(T()), Sample(T(3)), Sample(T(2, 3)), Sample(T(1, 2, 3))],
        )
        for n in (1, 2, 3)
    ],
    Op("broadcast_tensors", dtypes="float32", samples=[Sample(T(3, 1), T(4)), Sample(T(), T(2))]),
    Op(
        "cartesian_prod",
        dtypes="float32",
        samples=[Sample(T(2), T(3)), Sample(T(2), T(3), T(1)), Sample(T(4))],
    ),
    Op(
        "meshgrid",
        dtypes="float32",
        samples=[Sample(T(2), T(3), indexing="ij"), Sample(T(2), T(3), T(), indexing="xy")],
        reference=lambda *x, indexing: np.meshgrid(*x, indexing=indexing),
    ),
    Op("fliplr", dtypes="float32", samples=[Sample(T(2, 3))], reference=np.fliplr),
    Op("flipud", dtypes="float32", samples=[Sample(T(2, 3)), Sample(T(3))], reference=np.flipud),
    Op(
        "diagflat",
        dtypes="float32",
        samples=[Sample(T(3)), Sample(T(2, 2), 1), Sample(T(3), -2)],
        reference=np.diagflat,
    ),
    Op(
        "channel_shuffle",
        dtypes="float32",
        samples=[Sample(T(2, 6, 3), 3), Sample(T(1, 4, 2, 2), 2)],
    ),
    Op(
        "constant_pad_nd",
        dtypes=NUMBERS,
        samples=[Sample(T(2, 3), (1, 2)), Sample(T(2, 3), (-1, 2, 1, 0), 3)],
    ),
    Op(
        "clone",
        dtypes=ALL,
        samples=[Sample(T(2, 3)), Sample(T(2, 3, layout="transposed")), Sample(T())],
        reference=np.copy,
    ),
    Op(
        "Tensor.detach",
        dtypes="float32",
        samples=[Sample(T(2, 3)), Sample(T(2, 3, layout="transposed"))],
        grad=False,
        inplace=False,
    ),
    Op(
        "Tensor.contiguous",
        dtypes="float32",
        samples=[Sample(T(2, 3)), Sample(T(2, 3, layout="transposed"))],
    ),
    Op("Tensor.type_as", dtypes="float32 int64", samples=[Sample(T(2, 3), T(1, dtype="float64"))]),
    Op(
        "Tensor.to",
        dtypes="float32 int64 bool",
        samples=[
            Sample(T(2, 3), dtype="float64"),
            Sample(T(2, 3, layout="transposed"), dtype="bfloat16"),
        ],
    ),
    Op(
        "equal",
        dtypes="float32 int64",
        samples=[Sample(T(2, 3), T(2, 3)), Sample(T(2), T(3)), Sample(T(0), T(0))],
        grad=False,
    ),
    Op(
        "Tensor.fill_diagonal_",
        dtypes="float32 int64",
        samples=[Sample(T(3, 4), 2), Sample(T(7, 3), 1, True)],
        grad=False,
        layouts=False,
    ),
    Op(
        "frexp",
        dtypes="full",
        samples=[Sample(T(5)), Sample(T(2, 3, layout="transposed"))],
        grad=False,
    ),
]
