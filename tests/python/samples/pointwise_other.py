"""Bounds, selection, and parts of numbers."""

import numpy as np

from .common import Error, Op, Sample, T
from .trigonometric import unary


def pairs():
    """Two tensors, broadcasting."""
    return [
        Sample(T(5, unique=True), T(5, low=-1.7, high=2.4, unique=True)),
        Sample(T(3, 1), T(4)),
        Sample(T(2, 3, layout="transposed"), T()),
        Sample(T(0, 2), T(2)),
    ]


def clamp(x, min=None, max=None):
    """x brought into [min, max]."""
    return np.clip(x, min, max)


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
    Op("hypot", pairs(), np.hypot, "float"),
    Op(
        "copysign",
        [Sample(T(5, low=0.1), T(5)), Sample(T(3, 1, low=0.1), T(4)), Sample(T(4), -1.0)],
        np.copysign,
        "float",
    ),
    Op("nextafter", pairs(), np.nextafter, "full", grad=False),
    Op("gcd", pairs(), np.gcd, "int64 int32", grad=False),
    Op("lcm", pairs(), np.lcm, "int64 int32", grad=False),
    Op("logaddexp", pairs(), np.logaddexp, "float"),
    Op("logaddexp2", pairs(), np.logaddexp2, "float"),
    Op("heaviside", [Sample(T(5), T(5)), Sample(T(3, 1), T(4))], np.heaviside, "full", grad=False),
    Op(
        "ldexp",
        [Sample(T(5), T(5, dtype="int64")), Sample(T(3, 1), T(4, dtype="int64"))],
        np.ldexp,
        "full",
        inplace=False,
    ),
    Op("angle", unary(), np.angle, "full complex", gradgrad=False),
    Op("nan_to_num", unary(), lambda x: x, "float int"),
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
    Op("complex", [Sample(T(4), T(4)), Sample(T(3, 1), T(2))], lambda a, b: a + 1j * b, "full"),
    Op("conj_physical", unary(), np.conj, "full int"),
    Op(
        "polar",
        [Sample(T(4, low=0.1), T(4)), Sample(T(3, 1, low=0.1), T(2))],
        lambda a, b: a * np.exp(1j * b),
        "full",
    ),
]
