#!/usr/bin/env python3
"""Errors of special functions and distributions in float32, in units in the last place.

    python tools/accuracy.py [--only TEXT] [--points N]

The values are PyTorch's in float64, so PyTorch must be installed beside facula; its own errors in
float32 are shown beside ours. Functions of distributions are taken at numbers drawn from them.
Where terms nearly cancel, as beside a zero of a function, any library is many units away, so the
middle error is shown as well.
"""

import argparse
import sys
import warnings
from pathlib import Path

import facula
import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "python"))
from distribution_cases import CASES, make  # noqa: E402

MODULES = (facula, torch)
# What a distribution raises that lacks a function, or takes no numbers of another dtype.
CANNOT = (AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError)

# Where each function is looked at: low, high; names without an entry are taken over (-3, 3).
INTERVALS = {
    "bessel_j0": (0, 20), "bessel_j1": (0, 20), "bessel_y0": (0.1, 20), "bessel_y1": (0.1, 20),
    "modified_bessel_k0": (0.1, 20), "modified_bessel_k1": (0.1, 20),
    "scaled_modified_bessel_k0": (0.1, 20), "scaled_modified_bessel_k1": (0.1, 20),
    "spherical_bessel_j0": (0.1, 20), "airy_ai": (-5, 5), "entr": (1e-3, 5),
    "erfinv": (-0.99, 0.99),
    "gammaln": (0.05, 40), "digamma": (0.05, 40), "psi": (0.05, 40), "logit": (0.01, 0.99),
    "ndtri": (0.001, 0.999), "log_ndtr": (-15, 5), "log1p": (-0.9, 10), "i0": (-20, 20),
    "i1": (-20, 20), "expm1": (-5, 10), "erfcx": (-3, 20),
}  # fmt: skip
ONE = """airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 digamma entr erf erfc erfcx erfinv exp2
expit expm1 gammaln i0 i0e i1 i1e log1p log_ndtr logit modified_bessel_i0 modified_bessel_i1
modified_bessel_k0 modified_bessel_k1 ndtr ndtri psi scaled_modified_bessel_k0
scaled_modified_bessel_k1 sinc spherical_bessel_j0""".split()
# name: the intervals of both arguments
TWO = {
    "gammainc": ((0.1, 20), (0.1, 20)),
    "gammaincc": ((0.1, 20), (0.1, 20)),
    "xlogy": ((0.1, 5), (0.1, 5)),
    "xlog1py": ((0.1, 5), (0.1, 5)),
    "zeta": ((1.1, 8), (0.5, 10)),
}


def units(found, wanted):
    """Worst and middle distance of float32 numbers from those wanted, in units of the latter."""
    found, wanted = (np.asarray(t, np.float64).ravel() for t in (found, wanted))
    usable = np.isfinite(wanted) & (np.abs(wanted) > 1e-30) & (np.abs(wanted) < 1e30)
    if not usable.any():
        return None
    unit = np.spacing(np.abs(wanted[usable]).astype(np.float32)).astype(np.float64)
    apart = np.abs(found[usable] - wanted[usable]) / unit
    return float(apart.max()), float(np.median(apart))


def drawn(interval, points, seed):
    low, high = interval
    return np.random.default_rng(seed).uniform(low, high, points).astype(np.float32)


def functions(points):
    """Rows of special functions: name, then (worst, middle) of each library."""
    intervals = {**{n: (INTERVALS.get(n, (-3, 3)),) for n in ONE}, **TWO}
    for name, ranges in intervals.items():
        columns = [drawn(r, points, k) for k, r in enumerate(ranges)]
        wide = [torch.from_numpy(c.astype(np.float64)) for c in columns]
        wanted = getattr(torch.special, name)(*wide).numpy()
        found = [getattr(m.special, name)(*map(m.from_numpy, columns)).numpy() for m in MODULES]
        yield "special." + name, [units(f, wanted) for f in found]


def calls_at(draws):
    """The functions of a distribution that are looked at, for the numbers drawn."""

    def numbers(d, m):
        return m.from_numpy(draws.numpy()).to(_dtype(d, m))

    return {
        "log_prob": lambda d, m: d.log_prob(numbers(d, m)),
        "cdf": lambda d, m: d.cdf(numbers(d, m)),
        "entropy": lambda d, m: d.entropy(),
    }


def distributions(points):
    """Rows of distributions: each of log_prob, cdf and entropy that there is."""
    for name in CASES:
        torch.manual_seed(0)
        try:
            exact, _ = make(torch, name)
            draws = exact.sample((max(points // 100, 10),)).float()
        except CANNOT:
            continue
        for label, call in calls_at(draws).items():
            errors = distribution_errors(name, exact, call)
            if errors:
                yield f"{name}.{label}", errors


def _dtype(d, m):
    """float64 for the exact distribution, which is told by a parameter."""
    tensors = [v for v in vars(d).values() if isinstance(v, m.Tensor)]
    inner = [v for b in vars(d).values() if hasattr(b, "sample") for v in vars(b).values()]
    wide = any(t.dtype == m.float64 for t in [*tensors, *inner] if isinstance(t, m.Tensor))
    return m.float64 if wide else m.float32


def distribution_errors(name, exact, call):
    try:
        wanted = call(exact, torch).detach().numpy()
        found = [call(make(m, name, "float32")[0], m).detach().numpy() for m in MODULES]
    except CANNOT:
        return None
    errors = [units(f, wanted) for f in found]
    return None if None in errors else errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--points", type=int, default=20000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| function | worst | PyTorch's | middle | PyTorch's |")
    print("|---|---|---|---|---|")
    for table in (functions, distributions):
        for name, (ours, theirs) in table(options.points):
            if options.only in name:
                numbers = " | ".join(f"{x:.2f}" for p in zip(ours, theirs, strict=True) for x in p)
                print(f"| {name} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
