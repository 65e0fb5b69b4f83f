"""Special functions; the differential suite checks the values of those that NumPy lacks."""

import math

import numpy as np
from samples.common import Error, Op, Sample, T
from samples.elementwise.trigonometric import unary

S = "special."
each = np.vectorize(lambda f, x: f(x), otypes=[float])


def pairs(low=0.5, high=3):
    """Two tensors, broadcasting."""
    return [
        Sample(T(5, low=low, high=high), T(5, low=low, high=high)),
        Sample(T(3, 1, low=low, high=high), T(4, low=low, high=high)),
    ]


def degrees():
    """A point and a degree, either as a number."""
    return [
        Sample(T(5, low=-0.9, high=0.9), T(5, low=0, high=9, dtype="int64")),
        Sample(T(3, low=-0.9, high=0.9), 3),
    ]


POLYNOMIALS = [
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
]
WITHOUT_SLOPE = [
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "spherical_bessel_j0",
    "airy_ai",
]
BESSEL = [
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
]

OPS = [
    Op("erf", unary(), lambda x: each(math.erf, x), "full"),
    Op("erfc", unary(), lambda x: each(math.erfc, x), "full"),
    Op("erfinv", unary(-0.9, 0.9), None, "full"),
    Op("lgamma", unary(0.2, 4), lambda x: each(math.lgamma, x), "full"),
    Op("digamma", unary(0.2, 4), None, "full"),
    Op(
        "polygamma",
        [Sample(1, T(5, low=0.5)), Sample(3, T(2, 3, low=0.5, layout="transposed"))],
        None,
        "full",
        method=False,
        inplace=False,
        errors=[Error(RuntimeError, "n must not be negative", Sample(-1, T(2)))],
    ),
    Op("mvlgamma", [Sample(T(5, low=2, high=5), 3)], None, "full", inplace=False),
    Op("i0", unary(), np.i0, "full"),
    Op("igamma", pairs(), None, "full", grad=False),
    Op("igammac", pairs(), None, "full", grad=False),
    Op("xlogy", [*pairs(), Sample(T(4), 2.0)], lambda x, y: x * np.log(y), "full"),
    Op(S + "xlog1py", [*pairs(), Sample(T(4), 2.0)], lambda x, y: x * np.log1p(y), "full"),
    Op(S + "zeta", pairs(1.5, 4), None, "full", grad=False),
    *[
        Op(S + n, unary(0.2, 2), None, "full")
        for n in ("i0e", "i1", "i1e", "erfcx", "ndtr", "log_ndtr", "entr")
    ],
    Op(S + "ndtri", unary(0.1, 0.9), None, "full"),
    *[Op(S + n, unary(0.3, 3), None, "full") for n in BESSEL],
    *[Op(S + n, unary(0.3, 3), None, "full", grad=False) for n in WITHOUT_SLOPE],
    *[Op(S + n, degrees(), None, "full", grad=False) for n in POLYNOMIALS],
]
