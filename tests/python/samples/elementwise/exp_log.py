"""Exponentials, logarithms, and the logistic function."""

import numpy as np
from samples.common import Op, Sample, T
from samples.elementwise.minmax import pairs
from samples.elementwise.trigonometric import unary


def sigmoid(x):
    """1 / (1 + e^-x)."""
    return 1 / (1 + np.exp(-x))


def logit(x, eps=None):
    """log(x / (1 - x)) of x clamped to [eps, 1 - eps]."""
    y = x if eps is None else np.clip(x, eps, 1 - eps)
    return np.log(y / (1 - y))


OPS = [
    Op("exp", unary(), np.exp, "float complex"),
    Op("exp2", unary(), lambda x: np.exp(x * np.log(2)), "float complex"),
    Op("expm1", unary(), np.expm1, "float complex"),
    Op("log", unary(0.1, 3), np.log, "float complex"),
    Op("log2", unary(0.1, 3), np.log2, "float complex"),
    Op("log10", unary(0.1, 3), np.log10, "float complex"),
    Op("log1p", unary(-0.9, 2), np.log1p, "float complex"),
    Op("sigmoid", unary(), sigmoid, "float complex"),
    Op("logit", [*unary(0.1, 0.9), Sample(T(6, low=0.05, high=0.95), eps=0.2)], logit, "float"),
    Op("logaddexp", pairs(), np.logaddexp, "float"),
    Op("logaddexp2", pairs(), np.logaddexp2, "float"),
]
