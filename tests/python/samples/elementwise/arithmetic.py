"""Addition, multiplication, division and their kin."""

import numpy as np
from samples.common import Error, Op, Sample, T
from samples.elementwise.trigonometric import unary


def pairs(*more, low=-2):
    """Two tensors, or a tensor and a number, broadcasting."""
    return [
        Sample(T(5, low=low), T(5, low=low)),
        Sample(T(3, 1, low=low), T(4, low=low)),
        Sample(T(2, 3, low=low, layout="transposed"), T(low=low)),
        Sample(T(4, low=low), 2),
        Sample(T(0, 2), T(2)),
        *more,
    ]


def divisors(*more):
    """The same with divisors that are not zero."""
    return [
        Sample(T(5, high=9), T(5, low=1, high=4)),
        Sample(T(3, 1, high=9), T(4, low=1, high=4)),
        Sample(T(4, high=9), 2),
        *more,
    ]


ZERO = [Error(RuntimeError, "ZeroDivisionError", Sample(T(2, dtype="int64"), 0))]

OPS = [
    Op(
        "add",
        pairs(Sample(T(4), T(4), alpha=2)),
        lambda a, b, alpha=1: a + alpha * b,
        "float int complex",
    ),
    Op(
        "sub",
        pairs(Sample(T(4), T(4), alpha=2)),
        lambda a, b, alpha=1: a - alpha * b,
        "float int complex",
        errors=[
            Error(
                NotImplementedError,
                "`-` takes no bool tensors; a mask is",
                Sample(T(2, dtype="bool"), T(2, dtype="bool")),
            )
        ],
    ),
    Op("mul", pairs(), np.multiply, "float int complex"),
    Op("div", divisors(), np.divide, "float complex"),
    Op(
        "Tensor.div",
        divisors(Sample(T(4, high=9), T(4, low=1, high=4), rounding_mode="floor")),
        lambda a, b, rounding_mode=None: a / b if rounding_mode is None else np.floor(a / b),
        "full",
        inplace=False,
        gradgrad=False,
        errors=[Error(RuntimeError, "rounding_mode", Sample(T(2), T(2), rounding_mode="up"))],
    ),
    Op("floor_divide", divisors(), np.floor_divide, "full int", grad=False, errors=ZERO),
    Op("remainder", divisors(), np.remainder, "full int", errors=ZERO),
    Op("fmod", divisors(), np.fmod, "full int", errors=ZERO),
    Op("rsub", pairs(), lambda a, b: b - a, "float int"),
    Op(
        "neg",
        unary(),
        np.negative,
        "float int complex",
        errors=[
            Error(
                NotImplementedError,
                "`-` takes no bool tensors; a mask is",
                Sample(T(2, dtype="bool")),
            )
        ],
    ),
    Op("reciprocal", unary(0.3, 2), np.reciprocal, "float complex"),
    Op("abs", unary(), np.abs, "float int"),
    Op("sign", unary(), np.sign, "float int", gradgrad=False),
    Op("sgn", unary(0.2, 2), lambda x: x / np.abs(x), "full complex", gradgrad=False),
    Op("signbit", unary(), np.signbit, "full", grad=False),
    Op("positive", unary(), np.positive, "float int", out=False, inplace=False),
    Op(
        "addcmul",
        [Sample(T(4), T(4), T(4)), Sample(T(3, 1), T(4), T(), value=2)],
        lambda x, a, b, value=1: x + value * a * b,
        "float int complex",
    ),
    Op(
        "addcdiv",
        [Sample(T(4), T(4), T(4, low=0.5)), Sample(T(3, 1), T(4), T(low=0.5), value=2)],
        lambda x, a, b, value=1: x + value * a / b,
        "float complex",
        errors=[
            Error(
                RuntimeError,
                "Integer division",
                Sample(T(2, dtype="int64"), T(2, dtype="int64"), T(2, dtype="int64")),
            )
        ],
    ),
    Op(
        "lerp",
        [
            Sample(T(4), T(4), 0.3),
            Sample(T(3, 1), T(4), 0.8),
            Sample(T(4), T(4), T(4, low=0, high=1)),
            Sample(T(3, 1), T(4), T(3, 4)),
        ],
        lambda a, b, w: a + w * (b - a),
        "float",
        errors=[
            Error(
                RuntimeError,
                "expected dtype",
                Sample(T(2, dtype="float32"), T(2, dtype="float64"), 0.5),
            )
        ],
    ),
    *(
        Op(
            f"ops.aten.{name}.Scalar",
            [Sample(T(2, 3), 2.5), Sample(T(4), 3), Sample(T(), -2), Sample(T(0, 3), 2), *more],
            dtypes="float complex",
            inplace=False,
            out=False,
            method=False,
        )
        for name, more in {
            "add": [Sample(T(4), 3, 2)],
            "sub": [Sample(T(4), 3, 2)],
            "mul": [],
            "div": [],
        }.items()
    ),
]
