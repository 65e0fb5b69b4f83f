"""The larger and the smaller of two elements."""

import numpy as np
from samples.common import Error, Op, Sample, T


def pairs():
    """Two tensors, broadcasting."""
    return [
        Sample(T(5, unique=True), T(5, low=-1.7, high=2.4, unique=True)),
        Sample(T(3, 1), T(4)),
        Sample(T(2, 3, layout="transposed"), T()),
        Sample(T(0, 2), T(2)),
    ]


OPS = [
    Op(
        "maximum",
        pairs(),
        np.maximum,
        "float int",
        errors=[
            Error(TypeError, "complex", Sample(T(2, dtype="complex64"), T(2, dtype="complex64")))
        ],
    ),
    Op("minimum", pairs(), np.minimum, "float int"),
    Op("fmax", pairs(), np.fmax, "float int"),
    Op("fmin", pairs(), np.fmin, "float int"),
]
