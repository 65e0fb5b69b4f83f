"""Elements repeated, turned round, or cut to a triangle or diagonal."""

import numpy as np
from samples.common import Error, Op, Sample, T

ALL = "float complex int bool"

NUMBERS = "float complex int"


OPS = [
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
