"""Parts of floating point numbers."""

import numpy as np
from samples.common import Op, Sample, T
from samples.elementwise.minmax import pairs
from samples.elementwise.trigonometric import unary

OPS = [
    Op(
        "copysign",
        [Sample(T(5, low=0.1), T(5)), Sample(T(3, 1, low=0.1), T(4)), Sample(T(4), -1.0)],
        np.copysign,
        "float",
    ),
    Op("nextafter", pairs(), np.nextafter, "full", grad=False),
    Op("nan_to_num", unary(), lambda x: x, "float int"),
]
