"""Operations on bits."""

import numpy as np
from samples.common import Error, Op, Sample, T


def pairs(high=100):
    """Two tensors, or a tensor and a number."""
    return [
        Sample(T(5, high=100), T(5, low=0, high=high)),
        Sample(T(3, 1, high=100), T(4, low=0, high=high)),
        Sample(T(2, 3, layout="transposed", high=100), 3),
        Sample(T(0, 2), T(2)),
    ]


FLOAT = [
    Error(
        NotImplementedError, "not implemented", Sample(T(2, dtype="float32"), T(2, dtype="float32"))
    )
]

OPS = [
    Op("bitwise_and", pairs(), np.bitwise_and, "int", grad=False, errors=FLOAT),
    Op("bitwise_or", pairs(), np.bitwise_or, "int", grad=False, errors=FLOAT),
    Op("bitwise_xor", pairs(), np.bitwise_xor, "int", grad=False, errors=FLOAT),
    Op(
        "bitwise_not", [Sample(T(5, high=100)), Sample(T())], np.bitwise_not, "int bool", grad=False
    ),
    Op("bitwise_left_shift", pairs(4), np.left_shift, "int64 int32", grad=False),
    Op("bitwise_right_shift", pairs(4), np.right_shift, "int64 int32", grad=False),
]
