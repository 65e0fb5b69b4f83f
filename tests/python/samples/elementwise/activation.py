"""Activation functions."""

import numpy as np
from samples.common import Error, Op, Sample, T
from samples.elementwise.exp_log import sigmoid
from samples.elementwise.trigonometric import unary

F = "nn.functional."


def samples(*more, low=-4, high=4):
    """The usual shapes, and calls with numbers."""
    return [*unary(low, high), *more]


def softplus(x, beta=1, threshold=20):
    """log(1 + e^(beta x)) / beta; x itself past the threshold."""
    return np.where(beta * x > threshold, x, np.log1p(np.exp(np.minimum(beta * x, 50))) / beta)


def elu(x, alpha=1.0):
    """x, or alpha (e^x - 1) below zero."""
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def selu(x):
    """Elu with the constants that keep mean and variance."""
    return 1.0507009873554805 * elu(x, 1.6732632423543772)


def glu(x, dim=-1):
    """First half times the sigmoid of the second."""
    a, b = np.split(x, 2, dim)
    return a * sigmoid(b)


OPS = [
    Op("relu", samples(), lambda x: np.maximum(x, 0), "float int"),
    Op(F + "relu6", samples(high=8), lambda x: np.clip(x, 0, 6), "float", inplace=False, out=False),
    Op(
        F + "leaky_relu",
        samples(Sample(T(5), 0.3)),
        lambda x, s=0.01: np.where(x > 0, x, s * x),
        "float",
        inplace=False,
        out=False,
    ),
    Op(F + "elu", samples(Sample(T(5), 0.5)), elu, "float", inplace=False, out=False),
    Op(F + "selu", samples(), selu, "float", inplace=False, out=False),
    Op(
        F + "celu",
        samples(Sample(T(5), 0.5)),
        lambda x, a=1.0: a * elu(x / a),
        "float",
        inplace=False,
        out=False,
    ),
    Op(
        F + "gelu",
        samples(Sample(T(5), approximate="tanh")),
        None,
        "float",
        inplace=False,
        out=False,
    ),
    Op(F + "silu", samples(), lambda x: x * sigmoid(x), "float", inplace=False, out=False),
    Op(
        F + "mish", samples(), lambda x: x * np.tanh(softplus(x)), "float", inplace=False, out=False
    ),
    Op(
        F + "softplus",
        samples(Sample(T(5, high=9), 2, 6)),
        softplus,
        "float",
        inplace=False,
        out=False,
    ),
    Op(
        F + "hardtanh",
        samples(Sample(T(5), -0.5, 1.5)),
        lambda x, a=-1, b=1: np.clip(x, a, b),
        "float",
        inplace=False,
        out=False,
    ),
    Op(
        F + "hardsigmoid",
        samples(),
        lambda x: np.clip(x + 3, 0, 6) / 6,
        "float",
        inplace=False,
        out=False,
    ),
    Op(
        F + "hardswish",
        samples(),
        lambda x: x * np.clip(x + 3, 0, 6) / 6,
        "float",
        inplace=False,
        out=False,
    ),
    Op(
        F + "hardshrink",
        samples(Sample(T(5), 1.0)),
        lambda x, n=0.5: np.where(np.abs(x) > n, x, 0),
        "float",
        inplace=False,
        out=False,
    ),
    Op(
        F + "softshrink",
        samples(Sample(T(5), 1.0)),
        lambda x, n=0.5: np.sign(x) * np.maximum(np.abs(x) - n, 0),
        "float",
        inplace=False,
        out=False,
        errors=[Error(RuntimeError, "lambda", Sample(T(3), -1.0))],
    ),
    Op(F + "logsigmoid", samples(), lambda x: -softplus(-x), "float", inplace=False, out=False),
    Op(
        "threshold",
        [Sample(T(5), 0.5, 2.0), Sample(T(2, 3, layout="transposed"), -1, 0)],
        lambda x, t, v: np.where(x > t, x, v),
        "float",
        method=False,
    ),
    Op(
        "prelu",
        [Sample(T(2, 3, 4), T(3)), Sample(T(5), T(1)), Sample(T(2, 3), T(1))],
        lambda x, w: np.where(
            x > 0, x, x * w.reshape([1, -1] + [1] * (x.ndim - 2) if x.ndim > 1 else [1])
        ),
        "float",
    ),
    Op(
        F + "glu",
        [Sample(T(4, 6)), Sample(T(4, 6), 0), Sample(T(2, 4, layout="transposed"))],
        glu,
        "float",
        inplace=False,
        out=False,
        errors=[Error(RuntimeError, "even", Sample(T(3)))],
    ),
    Op(
        F + "rrelu",
        [Sample(T(3, 4)), Sample(T(5), 0.1, 0.3, True)],
        None,
        "full",
        inplace=False,
        out=False,
        nondeterministic=True,
    ),
]
