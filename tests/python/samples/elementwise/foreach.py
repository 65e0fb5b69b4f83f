"""Operators over lists of tensors: each element has the values that the plain operator gives."""

import numpy as np
from samples.common import Error, Op, Sample, T, aten

LIST = [T(3), T(2, 3, layout="transposed"), T(), T(0)]
ABOVE = [T(3, low=0.2, high=3), T(2, 3, low=0.2, high=3, layout="transposed"), T(low=0.2, high=3)]
INSIDE = [T(3, low=-0.9, high=0.9), T(2, 3, low=-0.9, high=0.9)]
OTHER = [T(3, low=0.5), T(2, 3, low=0.5), T(low=0.5), T(0)]

UNARY = {
    "abs": LIST,
    "ceil": LIST,
    "cos": LIST,
    "cosh": LIST,
    "erf": LIST,
    "erfc": LIST,
    "exp": LIST,
    "expm1": LIST,
    "floor": LIST,
    "frac": LIST,
    "neg": LIST,
    "round": LIST,
    "sigmoid": LIST,
    "sign": LIST,
    "sin": LIST,
    "sinh": LIST,
    "tan": INSIDE,
    "tanh": LIST,
    "trunc": LIST,
    "acos": INSIDE,
    "asin": INSIDE,
    "atan": LIST,
    "lgamma": ABOVE,
    "log": ABOVE,
    "log10": ABOVE,
    "log1p": ABOVE,
    "log2": ABOVE,
    "reciprocal": ABOVE,
    "rsqrt": ABOVE,
    "sqrt": ABOVE,
}
SHARED = {
    "dtypes": "full",
    "gradgrad": False,
    "method": False,
    "inplace": False,
    "out": False,
    "tolerance": 4,
}

LISTS = SHARED | {"beyond_torch": "it has no derivative of them, and no kernel for integers"}


def each(function):
    """A reference over lists."""
    return lambda x, *args: [
        function(t, *(a[i] if isinstance(a, list) else a for a in args)) for i, t in enumerate(x)
    ]


OPS = [
    *[Op(f"_foreach_{name}", [Sample(tensors)], **SHARED) for name, tensors in UNARY.items()],
    *[
        Op(
            f"_foreach_{name}",
            [Sample(LIST, OTHER), Sample(LIST, 2.0), Sample(LIST, [1.0, 2.0, 3.0, 4.0])],
            each(function),
            errors=[Error(RuntimeError, "", Sample([T(2), T(2)], [T(2)]))],
            **SHARED,
        )
        for name, function in (
            ("add", np.add),
            ("sub", np.subtract),
            ("mul", np.multiply),
            ("div", np.divide),
            ("maximum", np.maximum),
            ("minimum", np.minimum),
            ("clamp_max", np.minimum),
            ("clamp_min", np.maximum),
        )
    ],
    Op(
        "_foreach_pow",
        [Sample(ABOVE, 2.0), Sample(ABOVE, [1.0, 2.0, 3.0]), Sample(ABOVE, ABOVE)],
        each(np.power),
        **SHARED,
    ),
    *[
        Op(
            f"_foreach_{name}",
            [
                Sample(LIST, OTHER, OTHER),
                Sample(LIST, OTHER, OTHER, 0.5),
                Sample(LIST, OTHER, OTHER, [1.0, 2.0, 3.0, 4.0]),
            ],
            beyond_torch="its gradient stumbles over tensors without dimensions",
            **SHARED,
        )
        for name in ("addcmul", "addcdiv")
    ],
    Op("_foreach_lerp", [Sample(LIST, OTHER, 0.3), Sample(LIST, OTHER, OTHER)], **SHARED),
    Op("_foreach_norm", [Sample(LIST), Sample(LIST, 1), Sample(LIST[:2], float("inf"))], **SHARED),
    Op("_foreach_max", [Sample(ABOVE)], each(np.max), **SHARED),
    aten("_foreach_clone", [Sample(LIST)], **LISTS),
    aten("_foreach_zero", [Sample(LIST)], **LISTS),
    aten("_foreach_copy", [Sample(LIST, OTHER)], **LISTS),
    aten("_foreach_mm", [Sample([T(2, 3), T(1, 4)], [T(3, 2), T(4, 5)])], **LISTS),
    aten("_foreach_powsum.Scalar", [Sample(LIST), Sample(LIST, 3)], **LISTS),
]
