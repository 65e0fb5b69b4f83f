"""Complex numbers from their parts, and their parts."""

import numpy as np
from samples.common import Op, Sample, T
from samples.elementwise.trigonometric import unary

OPS = [
    Op("angle", unary(), np.angle, "full complex", gradgrad=False),
    Op("complex", [Sample(T(4), T(4)), Sample(T(3, 1), T(2))], lambda a, b: a + 1j * b, "full"),
    Op("conj_physical", unary(), np.conj, "full int"),
    Op(
        "polar",
        [Sample(T(4, low=0.1), T(4)), Sample(T(3, 1, low=0.1), T(2))],
        lambda a, b: a * np.exp(1j * b),
        "full",
    ),
]
