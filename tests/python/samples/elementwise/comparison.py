"""Comparisons and tests of elements."""

import numpy as np
from samples.common import Error, Op, Sample, T

EVERY = "float int bool"


def pairs():
    """Two tensors, or a tensor and a number, broadcasting; few values, so that some are equal."""
    return [
        Sample(T(5, low=0, high=2), T(5, low=0, high=2)),
        Sample(T(3, 1), T(4)),
        Sample(T(2, 3, layout="transposed"), T()),
        Sample(T(4, low=0), 1),
        Sample(T(0, 2), T(2)),
    ]


OPS = [
    Op("eq", pairs(), np.equal, EVERY + " complex", grad=False),
    Op("ne", pairs(), np.not_equal, EVERY + " complex", grad=False),
    Op(
        "lt",
        pairs(),
        np.less,
        EVERY,
        grad=False,
        errors=[Error(NotImplementedError, "lt_cpu", Sample(T(2, dtype="complex64"), 1))],
    ),
    Op("le", pairs(), np.less_equal, EVERY, grad=False),
    Op("gt", pairs(), np.greater, EVERY, grad=False),
    Op("ge", pairs(), np.greater_equal, EVERY, grad=False),
    Op("isnan", [Sample(T(4)), Sample(T())], np.isnan, EVERY, grad=False),
    Op("isinf", [Sample(T(4)), Sample(T())], np.isinf, EVERY, grad=False),
    Op("isfinite", [Sample(T(4)), Sample(T())], np.isfinite, EVERY, grad=False),
    Op("isreal", [Sample(T(4)), Sample(T())], np.isreal, EVERY + " complex", grad=False),
    Op(
        "isposinf",
        [Sample(T(4))],
        np.isposinf,
        EVERY,
        grad=False,
        errors=[Error(TypeError, "complex", Sample(T(2, dtype="complex64")))],
    ),
    Op("isneginf", [Sample(T(4))], np.isneginf, EVERY, grad=False),
    Op(
        "isclose",
        [Sample(T(5), T(5)), Sample(T(5), T(5), rtol=0.5, atol=0.1)],
        lambda a, b, rtol=1e-5, atol=1e-8: np.isclose(a, b, rtol, atol),
        "full int",
        grad=False,
        errors=[Error(RuntimeError, "rtol", Sample(T(2), T(2), rtol=-1.0))],
    ),
    Op("heaviside", [Sample(T(5), T(5)), Sample(T(3, 1), T(4))], np.heaviside, "full", grad=False),
]
