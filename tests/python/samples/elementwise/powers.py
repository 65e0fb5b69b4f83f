"""Powers and roots."""

import numpy as np
from samples.common import Error, Op, Sample, T
from samples.elementwise.minmax import pairs
from samples.elementwise.trigonometric import unary

OPS = [
    Op(
        "pow",
        [
            Sample(T(5, low=0.2), 2),
            Sample(T(5, low=0.2), 0.5),
            Sample(T(4, low=0.2), -2),
            Sample(T(2, 3, low=0.2), 3),
            Sample(T(5, low=0.2), -0.5),
            Sample(T(5, low=0.2), 1.7),
            Sample(T(3, 1, low=0.2), T(4)),
            Sample(T(low=0.2), T(2, 3)),
        ],
        np.power,
        "float",
    ),
    Op(
        "float_power",
        [Sample(T(4, low=0.2), 1.5), Sample(T(3, 1, low=0.2), T(4))],
        lambda x, y: np.power(x.astype(np.float64), y),
        "float",
        inplace=False,
    ),
    Op("square", unary(), np.square, "float complex int"),
    Op("sqrt", unary(0.1, 3), np.sqrt, "float complex"),
    Op("rsqrt", unary(0.1, 3), lambda x: 1 / np.sqrt(x), "float complex"),
    Op(
        "Tensor.pow",
        [Sample(T(4, low=-3, high=3), 2), Sample(T(4, low=1, high=3), T(4, low=0, high=3))],
        lambda x, y: np.power(x, y),
        "int",
        errors=[
            Error(
                RuntimeError,
                "an integer has no power to a negative",
                Sample(T(3, dtype="int64"), -1),
            )
        ],
        inplace=False,
    ),
    Op("hypot", pairs(), np.hypot, "float"),
    Op(
        "ldexp",
        [Sample(T(5), T(5, dtype="int64")), Sample(T(3, 1), T(4, dtype="int64"))],
        np.ldexp,
        "full",
        inplace=False,
    ),
]
