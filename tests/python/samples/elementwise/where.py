"""Selection by a condition."""

import numpy as np
from samples.common import Error, Op, Sample, T

OPS = [
    Op(
        "where",
        [
            Sample(T(5, dtype="bool"), T(5), T(5)),
            Sample(T(3, 1, dtype="bool"), T(4), T()),
            Sample(T(2, 3, dtype="bool", layout="transposed"), T(2, 3), 1),
            Sample(T(4, dtype="bool"), 0, T(4)),
        ],
        np.where,
        "float int complex",
        method=False,
        errors=[
            Error(
                RuntimeError,
                "condition must be bool or uint8",
                Sample(T(2, dtype="int64"), T(2), T(2)),
            )
        ],
    ),
]
