#!/usr/bin/env python3
"""Writes src/kernels/scalar/series.h: Chebyshev coefficients from values of 40 digits.

    build/oracle-venv/bin/python tools/chebyshev.py    # needs mpmath, which PyTorch brings along

Each row of SERIES is one function on one interval. Coefficients are those of the polynomial that
agrees with it at the zeros of a Chebyshev polynomial (Trefethen, "Approximation Theory and
Approximation Practice", chapter 3), up to the last one that double precision sees.
"""

from pathlib import Path

import mpmath as mp

FILE = Path(__file__).resolve().parents[1] / "src/kernels/scalar/series.h"
POINTS = 60
SMALLEST = mp.mpf(10) ** -17

HEADER = """\
// Chebyshev series of special functions: written by tools/chebyshev.py, not by hand.
#pragma once

namespace facula::scalar::math::series {
"""


def scaled_k(order):
    """sqrt(x) e^x K(x) over 2 / x."""

    def value(s):
        return mp.sqrt(2 / s) * mp.exp(2 / s) * mp.besselk(order, 2 / s)

    return value


def decaying_airy(s):
    """2 sqrt(pi) x^(1/4) e^zeta Ai(x) over 1 / zeta, zeta = 2/3 x^(3/2)."""
    x = (3 / (2 * s)) ** (mp.mpf(2) / 3)
    return 2 * mp.sqrt(mp.pi) * mp.root(x, 4) * mp.exp(1 / s) * mp.airyai(x)


def waves_of_airy(part):
    """P (part 0) or zeta Q of sqrt(pi) x^(1/4) Ai(-x) = P cos(t) + Q sin(t), t = zeta - pi/4.

    Over 1 / zeta^2. The same P and -Q stand in Bi(-x) = Q cos(t) - P sin(t).
    """

    def value(s):
        zeta = 1 / mp.sqrt(s)
        x, t = (3 * zeta / 2) ** (mp.mpf(2) / 3), zeta - mp.pi / 4
        a, b = mp.airyai(-x), mp.airybi(-x)
        size = mp.sqrt(mp.pi) * mp.root(x, 4)
        if part == 0:
            return size * (a * mp.cos(t) - b * mp.sin(t))
        return size * zeta * (a * mp.sin(t) + b * mp.cos(t))

    return value


def regular_k(order):
    """K(x) without its logarithm, over x^2: K0 + log(x/2) I0, or x (K1 - log(x/2) I1)."""

    def value(square):
        x = mp.sqrt(square)
        sign, size = (1, 1) if order == 0 else (-1, x)
        return size * (mp.besselk(order, x) + sign * mp.log(x / 2) * mp.besseli(order, x))

    return value


def center_of_erfinv(w):
    """erfinv(x) / x over w = -log(1 - x^2), as Giles has it (2012)."""
    x = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(x) / x


def tail_of_erfinv(t):
    """erfinv(x) - t over t = sqrt(-log(1 - x^2)): the small part beside t."""
    w = t * t
    outside = mp.log(-mp.expm1(mp.log1p(-mp.exp(-w)) / 2))  # log(1 - x)
    start = mp.sqrt(-outside - mp.log(mp.sqrt(mp.pi) * t))
    return mp.findroot(lambda y: mp.log(mp.erfc(y)) - outside, start) - t


def near_i(order):
    """e^-x I0(x) or (1 + 1 / x) e^-x I1(x), neither of which comes near zero."""
    return lambda x: (1 + 1 / x) ** order * mp.exp(-x) * mp.besseli(order, x)


def far_i(order):
    """sqrt(x) e^-x I(x) over 8 / x."""
    return lambda s: mp.sqrt(8 / s) * mp.exp(-8 / s) * mp.besseli(order, 8 / s)


def waves_of_bessel(order, part):
    """P (part 0) or x / 5 Q of sqrt(pi x / 2) J(x) = P cos(t) - Q sin(t), over (5 / x)^2.

    t = x - (2 order + 1) pi/4. The same P and Q stand in Y(x) = P sin(t) + Q cos(t); they are
    Hankel's asymptotic series (Abramowitz and Stegun, 9.2.5), summed.
    """

    def value(s):
        x = 5 / mp.sqrt(s)
        t = x - (2 * order + 1) * mp.pi / 4
        j, y, size = mp.besselj(order, x), mp.bessely(order, x), mp.sqrt(mp.pi * x / 2)
        if part == 0:
            return size * (j * mp.cos(t) + y * mp.sin(t))
        return size * x / 5 * (y * mp.cos(t) - j * mp.sin(t))

    return value


def regular_j(order):
    """J(x) less its zeros at 0 and below 5, over x^2."""

    def value(square):
        x, zero = mp.sqrt(square), mp.besseljzero(order, 1)
        return mp.besselj(order, x) / (x**order * (square - zero**2))

    return value


def regular_y(order):
    """Y(x) without its logarithm and its pole, over x^2; of order 1 divided by x."""

    def value(square):
        x = mp.sqrt(square)
        rest = mp.bessely(order, x) - 2 / mp.pi * mp.log(x) * mp.besselj(order, x)
        return rest if order == 0 else (rest + 2 / (mp.pi * x)) / x

    return value


# 1 / zeta^2 at -4.5, where waves begin.
WAVES_END = 1 / (mp.mpf(2) / 3 * mp.mpf("4.5") ** 1.5) ** 2
# Name, what it is, function, interval.
SERIES = [
    ("i0_near", "e^-x I0(x) over x in (0, 8]", near_i(0), 0, 8),
    ("i0_far", "sqrt(x) e^-x I0(x) over 8 / x in (0, 1]", far_i(0), 0, 1),
    ("i1_near", "(1 + 1 / x) e^-x I1(x) over x in (0, 8]", near_i(1), 0, 8),
    ("i1_far", "sqrt(x) e^-x I1(x) over 8 / x in (0, 1]", far_i(1), 0, 1),
    ("k0", "sqrt(x) e^x K0(x) over 2 / x in (0, 1]", scaled_k(0), 0, 1),
    ("k1", "sqrt(x) e^x K1(x) over 2 / x in (0, 1]", scaled_k(1), 0, 1),
    ("k0_regular", "K0(x) + log(x/2) I0(x) over x^2 in (0, 4]", regular_k(0), 0, 4),
    ("k1_regular", "x (K1(x) - log(x/2) I1(x)) over x^2 in (0, 4]", regular_k(1), 0, 4),
    ("i0_small", "I0(x) over x^2 in (0, 4]", lambda s: mp.besseli(0, mp.sqrt(s)), 0, 4),
    (
        "i1_small",
        "I1(x) / x over x^2 in (0, 4]",
        lambda s: mp.besseli(1, mp.sqrt(s)) / mp.sqrt(s),
        0,
        4,
    ),
    ("erfinv_center", "erfinv(x) / x over w in (0, 5]", center_of_erfinv, 0, 5),
    ("erfinv_tail", "erfinv(x) - t over t = sqrt(w) in [2.2, 6.1]", tail_of_erfinv, 2.2, 6.1),
    ("erfinv_far", "the same in [6.1, 27.4]", tail_of_erfinv, 6.1, 27.4),
    ("airy_middle", "Ai(x) over x in [-4.5, 1]", mp.airyai, -4.5, 1),
    (
        "airy_near",
        "2 sqrt(pi) x^(1/4) e^zeta Ai(x) over 1 / zeta in [0.75, 1.5]",
        decaying_airy,
        0.75,
        1.5,
    ),
    ("airy_far", "the same in (0, 0.75]", decaying_airy, 0, 0.75),
    ("airy_cosine", "P over 1 / zeta^2, up to its value at -4.5", waves_of_airy(0), 0, WAVES_END),
    (
        "airy_sine",
        "zeta Q over 1 / zeta^2, up to its value at -4.5",
        waves_of_airy(1),
        0,
        WAVES_END,
    ),
    ("j0_small", "J0(x) / (x^2 - z^2) over x^2 in (0, 25], z its first zero", regular_j(0), 0, 25),
    ("j1_small", "J1(x) / (x (x^2 - z^2)) over x^2 in (0, 25], likewise", regular_j(1), 0, 25),
    ("y0_small", "Y0(x) - 2/pi log(x) J0(x) over x^2 in (0, 25]", regular_y(0), 0, 25),
    (
        "y1_small",
        "(Y1(x) - 2/pi (log(x) J1(x) - 1 / x)) / x over x^2 in (0, 25]",
        regular_y(1),
        0,
        25,
    ),
    ("j0_cosine", "P of order 0 over (5 / x)^2 in (0, 1]", waves_of_bessel(0, 0), 0, 1),
    ("j0_sine", "x / 5 Q of order 0 over (5 / x)^2 in (0, 1]", waves_of_bessel(0, 1), 0, 1),
    ("j1_cosine", "P of order 1 over (5 / x)^2 in (0, 1]", waves_of_bessel(1, 0), 0, 1),
    ("j1_sine", "x / 5 Q of order 1 over (5 / x)^2 in (0, 1]", waves_of_bessel(1, 1), 0, 1),
]


def coefficients(function, low, high):
    """The series of a function on an interval, its first coefficient halved."""
    low, high = mp.mpf(low), mp.mpf(high)
    angles = [mp.pi * (k + mp.mpf("0.5")) / POINTS for k in range(POINTS)]
    values = [function((high - low) / 2 * mp.cos(a) + (low + high) / 2) for a in angles]
    found = [
        2 * mp.fsum(v * mp.cos(j * a) for v, a in zip(values, angles, strict=False)) / POINTS
        for j in range(POINTS)
    ]
    found[0] /= 2
    size = max(abs(c) for c in found)
    while abs(found[-1]) < SMALLEST * size:
        found.pop()
    return found


def main():
    """Writes the file."""
    mp.mp.dps = 40
    lines = [HEADER]
    for name, what, function, low, high in SERIES:
        lines.append(f"// {what}.")
        numbers = ", ".join(mp.nstr(c, 18) for c in coefficients(function, low, high))
        lines.append(f"inline constexpr double {name}[] = {{{numbers}}};\n")
    lines.append("}  // namespace facula::scalar::math::series\n")
    FILE.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
