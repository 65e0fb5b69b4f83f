"""Elements brought between bounds."""

import numpy as np
from samples.common import Error, Op, Sample, T


def clamp(x, min=None, max=None):
    """x brought into [min, max]."""
    return np.clip(x, min, max)


OPS = [
    Op(
        "clamp",
        [
            Sample(T(5), -1, 1),
            Sample(T(5), 0),
            Sample(T(2, 3, layout="transposed"), max=1),
            Sample(T(3, 4), T(4, low=-2, high=-1), T(4, low=0)),
            Sample(T(3, 4), max=T()),
        ],
        clamp,
        "float int",
        errors=[Error(RuntimeError, "min or max must be given", Sample(T(3)))],
    ),
    Op("clamp_min", [Sample(T(5), 0), Sample(T(5), T(5))], np.maximum, "float int"),
    Op("clamp_max", [Sample(T(5), 0), Sample(T(5), T(5))], np.minimum, "float int"),
]
