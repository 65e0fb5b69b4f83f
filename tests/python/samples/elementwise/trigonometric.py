"""Circular and hyperbolic functions and their inverses."""

import numpy as np
from samples.common import Op, Sample, T


def unary(low=-2, high=2):
    """Shapes and layouts that every function of one tensor meets."""
    return [
        Sample(T(5, low=low, high=high)),
        Sample(T(2, 3, low=low, high=high, layout="transposed")),
        Sample(T(3, 4, low=low, high=high, layout="strided")),
        Sample(T(low=low, high=high)),
        Sample(T(0, 3)),
    ]


FULL = "float complex"

OPS = [
    Op("sin", unary(), np.sin, FULL),
    Op("cos", unary(), np.cos, FULL),
    Op("tan", unary(-1, 1), np.tan, FULL),
    Op("asin", unary(-0.9, 0.9), np.arcsin, FULL),
    Op("acos", unary(-0.9, 0.9), np.arccos, FULL),
    Op("atan", unary(-0.9, 0.9), np.arctan, FULL),
    Op("sinh", unary(), np.sinh, FULL),
    Op("cosh", unary(), np.cosh, FULL),
    Op("tanh", unary(), np.tanh, FULL),
    Op("asinh", unary(-0.9, 0.9), np.arcsinh, FULL),
    Op("acosh", unary(1.1, 3), np.arccosh, "float"),
    Op("atanh", unary(-0.9, 0.9), np.arctanh, FULL),
    Op("sinc", unary(0.2, 2), np.sinc, "float"),
    Op(
        "atan2",
        [
            Sample(T(4), T(4, low=0.5)),
            Sample(T(3, 1), T(4, low=0.5)),
            Sample(T(low=1), T(2, 2, low=1)),
        ],
        np.arctan2,
        "float",
    ),
    Op("deg2rad", unary(-180, 180), np.deg2rad, "float"),
    Op("rad2deg", unary(), np.rad2deg, "float"),
]
