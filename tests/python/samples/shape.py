"""Samples of joining, repeating, turning and padding."""

import numpy as np

from .common import Error, Op, Sample, T

ALL = "float complex int bool"
NUMBERS = "float complex int"
LIST = [Sample([T(2, 3), T(2, 3)]), Sample([T(3), T(3)]), Sample([T(), T()])]


def images(*modes):
    return (
        [Sample(T(2, 3, 4, 5), [1, 2, 2, 1], mode=m) for m in modes]
        + [Sample(T(1, 3, 4, 5, layout="channels_last"), [1, 0, 2, 1], mode=m) for m in modes]
        + [Sample(T(3, 4), [1, 1], mode=m) for m in modes]
        + [Sample(T(1, 2, 3, 4, 3), [1, 1, 0, 1, 2, 0], mode=m) for m in modes]
    )


OPS = [
    Op(
        "stack",
        dtypes=ALL,
        samples=LIST
        + [Sample([T(2, 3, layout="transposed"), T(2, 3)], -1), Sample([T(0, 2), T(0, 2)], 1)],
        errors=[Error(RuntimeError, "expects each tensor to be equal size", Sample([T(2), T(3)]))],
    ),
    Op("hstack", dtypes=ALL, samples=LIST, reference=lambda x: np.hstack(x)),
    Op("vstack", dtypes=ALL, samples=LIST, reference=lambda x: np.vstack(x)),
    Op("dstack", dtypes=ALL, samples=LIST, reference=lambda x: np.dstack(x)),
    Op("column_stack", dtypes=ALL, samples=LIST, reference=lambda x: np.column_stack(x)),
    Op(
        "combinations",
        dtypes=ALL,
        samples=[
            Sample(T(5)),
            Sample(T(4), 3),
            Sample(T(3), 2, True),
            Sample(T(2), 3),
            Sample(T(3), 0),
        ],
    ),
    Op(
        "tile",
        dtypes=ALL,
        samples=[
            Sample(T(2, 3), (2,)),
            Sample(T(3), (2, 2)),
            Sample(T(2, 3, layout="transposed"), (2, 0)),
            Sample(T(), (3,)),
        ],
        reference=lambda x, n: np.tile(x, n),
    ),
    Op(
        "Tensor.repeat",
        dtypes=ALL,
        samples=[
            Sample(T(2, 3), (2, 1, 3)),
            Sample(T(2, 3, layout="transposed"), (1, 2)),
            Sample(T(), (2,)),
        ],
        errors=[
            Error(RuntimeError, "repeats must have a number for each of", Sample(T(2, 3), (2,)))
        ],
    ),
    Op(
        "repeat_interleave",
        dtypes=ALL,
        samples=[
            Sample(T(2, 3), 2),
            Sample(T(2, 3, layout="transposed"), 2, 1),
            Sample(T(3, 2), T(3, dtype="int64", low=0, high=3), 0),
            Sample(T(), 3),
        ],
    ),
    Op(
        "flip",
        dtypes=ALL,
        samples=[
            Sample(T(2, 3), (0,)),
            Sample(T(2, 3, 4, layout="transposed"), (0, -1)),
            Sample(T(0, 2), (1,)),
        ],
        reference=lambda x, d: np.flip(x, d),
        errors=[Error(RuntimeError, "appears multiple times", Sample(T(2, 3), (0, 0)))],
    ),
    Op(
        "roll",
        dtypes=ALL,
        samples=[
            Sample(T(2, 3), 1),
            Sample(T(4, 3, layout="transposed"), (1, -2), (0, 1)),
            Sample(T(0, 2), 1, 0),
        ],
        reference=lambda x, s, d=None: np.roll(x, s, d),
    ),
    Op(
        "rot90",
        dtypes=ALL,
        samples=[Sample(T(2, 3), k, (0, 1)) for k in (0, 1, 2, -1)],
        reference=lambda x, k, d: np.rot90(x, k, d),
    ),
    Op(
        "tril",
        dtypes=ALL,
        samples=[
            Sample(T(3, 4)),
            Sample(T(2, 4, 3, layout="transposed"), 1),
            Sample(T(3, 3), -5),
            Sample(T(0, 3)),
        ],
        reference=np.tril,
        errors=[Error(RuntimeError, "at least 2 dimensions", Sample(T(3)))],
    ),
    Op(
        "triu",
        dtypes=ALL,
        samples=[
            Sample(T(3, 4)),
            Sample(T(2, 4, 3, layout="transposed"), 1),
            Sample(T(3, 3), 5),
            Sample(T(0, 3)),
        ],
        reference=np.triu,
    ),
    Op(
        "diag",
        dtypes=ALL,
        samples=[
            Sample(T(3)),
            Sample(T(3), -1),
            Sample(T(3, 4)),
            Sample(T(3, 4, layout="transposed"), 1),
        ],
        reference=np.diag,
    ),
    Op(
        "diag_embed",
        dtypes=ALL,
        samples=[Sample(T(2, 3)), Sample(T(2, 3, layout="transposed"), 1, 0, 2), Sample(T(0))],
    ),
    Op(
        "trace",
        dtypes=NUMBERS,
        samples=[Sample(T(3, 4)), Sample(T(4, 3, layout="transposed"))],
        errors=[Error(RuntimeError, "self must be a matrix", Sample(T(3)))],
    ),
    Op("block_diag", dtypes=NUMBERS, samples=[Sample(T(2, 3), T(3), T())]),
    Op(
        "nn.functional.pad",
        dtypes="float complex",
        samples=[
            Sample(T(2, 3), (1, 2)),
            Sample(T(2, 3, layout="transposed"), (-1, 2, 1, 0), value=3.0),
            *images("reflect", "replicate", "circular"),
        ],
        errors=[
            Error(RuntimeError, "pad must have an even length", Sample(T(3), (1,))),
            Error(
                NotImplementedError,
                "Unrecognised padding mode",
                Sample(T(1, 2, 3), (1, 1), mode="odd"),
            ),
        ],
    ),
    Op(
        "nn.functional.pixel_shuffle",
        dtypes=ALL,
        samples=[Sample(T(2, 8, 3, 2), 2), Sample(T(4, 3, 3), 2)],
    ),
    Op(
        "nn.functional.pixel_unshuffle",
        dtypes=ALL,
        samples=[Sample(T(2, 2, 6, 4), 2), Sample(T(1, 3, 3), 3)],
    ),
    Op(
        "nn.functional.unfold",
        dtypes="float complex",
        samples=[
            Sample(T(2, 1, 3, 4), (2, 3)),
            Sample(T(1, 1, 4, 4), 2, dilation=2, padding=1, stride=2),
        ],
    ),
    Op("nn.functional.fold", dtypes="float complex", samples=[Sample(T(1, 4, 6), (3, 4), (2, 2))]),
    Op(
        "nn.functional.one_hot",
        dtypes="int64",
        grad=False,
        samples=[Sample(T(2, 3, low=0, high=4)), Sample(T(3, low=0, high=4), 7)],
        errors=[
            Error(
                RuntimeError,
                "classes must be below num_classes, 2",
                Sample(T(1, dtype="int64", low=3, high=3), 2),
            )
        ],
    ),
]
