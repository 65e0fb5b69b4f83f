"""Elementwise functions by packs of registers, by vectors and one by one: the same bits."""

import facula
import numpy as np
import pytest

# name: the interval of its arguments
FUNCTIONS = {
    "exp": (-100, 90), "exp2": (-140, 128), "expm1": (-50, 90), "log": (0, 9), "log2": (0, 9),
    "log10": (0, 9), "log1p": (-1, 9), "sigmoid": (-90, 90), "tanh": (-9, 9), "sin": (-100, 100),
    "cos": (-100, 100), "tan": (-100, 100), "asin": (-1, 1), "acos": (-1, 1), "atan": (-5, 5),
    "erf": (-4, 4), "erfc": (-4, 9), "erfinv": (-1, 1), "gelu": (-4, 4), "silu": (-90, 90),
    "ndtr": (-9, 5),
}  # fmt: skip
EDGES = [np.nan, np.inf, 0.0, 1e-310, 1e-40, 0.5, 1.0, 2.0, 1e5, 2e6, 1e30, 3e38]
COUNT = 517  # not a whole number of packs


def numbers(name, dtype):
    low, high = FUNCTIONS[name]
    drawn = np.random.default_rng(3).uniform(low, high, COUNT)
    return facula.from_numpy(np.concatenate([drawn, EDGES, [-e for e in EDGES]])).to(dtype)


def bits(t):
    """The numbers as bytes; any NaN is as good as another."""
    return facula.where(t.isnan(), facula.full_like(t, 77), t).view(facula.uint8).tolist()


@pytest.mark.parametrize("dtype", [facula.float32, facula.float64, facula.bfloat16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_places_do_not_change_bits(name, dtype):
    homes = (facula, facula.special, facula.nn.functional)
    function = next(getattr(home, name) for home in homes if hasattr(home, name))
    x = numbers(name, dtype)
    whole = function(x)
    spread = facula.zeros(2 * len(x), dtype=dtype)[::2].copy_(x)
    assert bits(function(spread).contiguous()) == bits(whole)
    for begin, end in ((1, 7), (5, 100), (100, 441), (300, len(x))):
        assert bits(function(x[begin:end])) == bits(whole[begin:end].contiguous())


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_large_angles_beside_small_ones(name):
    """A block with an angle beyond the common range is computed another way."""
    function = getattr(facula, name)
    for dtype in (facula.float32, facula.float64):
        small = facula.linspace(-1e5, 1e5, 256, dtype=dtype)
        mixed = small.clone()
        mixed[17] = 3e7
        expected = function(small)
        expected[17] = function(mixed[17:18])[0]
        assert bits(function(mixed)) == bits(expected)


@pytest.mark.parametrize("dtype", [facula.float32, facula.float64, facula.bfloat16])
def test_powers_by_packs(dtype):
    """Rows and numbers on either side, special values among them, as one element at a time."""
    drawn = np.random.default_rng(4).uniform(-3, 3, (2, COUNT))
    edges = [*EDGES, *(-e for e in EDGES), 3.0, -3.0, 2.5, 16777217.0]
    crossed = np.stack([a.ravel() for a in np.meshgrid(edges, edges)])
    x, y = facula.from_numpy(np.concatenate([drawn, crossed], axis=1)).to(dtype).contiguous()
    rows = {"both": (x, y), "exponent": (x, y[3]), "base": (x[3], y)}
    for name, (a, b) in rows.items():
        spread = (a.expand_as(x), b.expand_as(x))
        one_by_one = facula.stack([facula.pow(p, q) for p, q in zip(*spread, strict=True)])
        assert bits(facula.pow(a, b)) == bits(one_by_one), name
