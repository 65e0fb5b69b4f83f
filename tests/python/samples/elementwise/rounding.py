"""Rounding."""

import numpy as np
from samples.common import Op, Sample, T
from samples.elementwise.trigonometric import unary

OPS = [
    Op("ceil", unary(), np.ceil, "float int", gradgrad=False),
    Op("floor", unary(), np.floor, "float int", gradgrad=False),
    Op("trunc", unary(), np.trunc, "float int", gradgrad=False),
    Op("round", [*unary(), Sample(T(5, high=300), decimals=-1)], np.round, "full", gradgrad=False),
    Op("frac", unary(), lambda x: x - np.trunc(x), "float"),
]
