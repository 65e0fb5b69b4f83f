"""Bessel functions, zeta and incomplete gamma functions against 40 digits, and PyTorch's edges."""

import facula
import mpmath
import numpy as np
import pytest
import torch

DTYPES = (np.float32, np.float64)
COUNT = 200


def of_order(function, order):
    return lambda x: function(order, x)


BESSEL = {
    "bessel_j0": of_order(mpmath.besselj, 0),
    "bessel_j1": of_order(mpmath.besselj, 1),
    "bessel_y0": of_order(mpmath.bessely, 0),
    "bessel_y1": of_order(mpmath.bessely, 1),
}


def uniform(low, high, dtype, seed=0):
    return np.random.default_rng(seed).uniform(low, high, COUNT).astype(dtype)


def logarithmic(low, high, dtype, seed=0):
    return np.exp(uniform(np.log(low), np.log(high), np.float64, seed)).astype(dtype)


def errors(found, exact, *columns):
    """The distances to 40 digits, and these digits rounded."""
    with mpmath.workdps(40):
        wanted = [
            exact(*map(mpmath.mpf, row)) for row in zip(*map(np.float64, columns), strict=True)
        ]
        apart = [float(abs(mpmath.mpf(float(f)) - w)) for f, w in zip(found, wanted, strict=True)]
        return np.array(apart), np.array([float(abs(w)) for w in wanted])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BESSEL)
def test_bessel_functions_are_exact_to_their_amplitude(name, dtype):
    x = np.concatenate(
        [uniform(1e-3, 5, dtype), uniform(5, 20, dtype), logarithmic(20, 1e8, dtype)]
    )
    if name[7] == "j":
        x[::2] *= -1
    found = getattr(facula.special, name)(facula.from_numpy(x)).numpy()
    apart, size = errors(found, BESSEL[name], x)
    amplitude = np.maximum(size, np.minimum(np.sqrt(2 / (np.pi * abs(x.astype(float)))), 1))
    if dtype is np.float64:
        assert np.max(apart / amplitude) < 2.0**-50
    else:
        assert np.all(apart < 0.51 * 2.0**-23 * size + 2.0**-31 * amplitude)


SMOOTH = {
    "modified_bessel_k0": of_order(mpmath.besselk, 0),
    "modified_bessel_k1": of_order(mpmath.besselk, 1),
    "scaled_modified_bessel_k0": lambda x: mpmath.exp(x) * mpmath.besselk(0, x),
    "scaled_modified_bessel_k1": lambda x: mpmath.exp(x) * mpmath.besselk(1, x),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SMOOTH)
def test_modified_bessel_functions_are_exact_to_some_units(name, dtype):
    x = np.concatenate([uniform(0.01, 4, dtype), logarithmic(1e-6, 80, dtype)])
    found = getattr(facula.special, name)(facula.from_numpy(x)).numpy()
    apart, size = errors(found, SMOOTH[name], x)
    # The last bits of x decide on exp(-x).
    slope = 1 if name.startswith("scaled") else np.maximum(x.astype(float), 1)
    bound = 2.0**-49 * slope if dtype is np.float64 else 0.51 * 2.0**-23
    assert np.all(apart / size < bound)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*SMOOTH, "spherical_bessel_j0", "digamma"])
def test_edges_of_other_functions_are_pytorchs(name, dtype):
    x = np.array([np.nan, np.inf, 0.0, -0.0, 1e-30, 1e-9, 0.5, 1.0, 2.0, 3.0, 50.0, 1e5], dtype)
    for points in (x, np.repeat(x, 60), x[::-1].copy()[::2], x[6:]):
        ours = getattr(facula.special, name)(facula.from_numpy(points)).numpy()
        theirs = getattr(torch.special, name)(torch.from_numpy(points)).numpy()
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-38)


@pytest.mark.parametrize("order", (0, 1))
def test_bessel_functions_keep_their_digits_near_the_first_zero(order):
    zero = float(mpmath.besseljzero(order, 1))
    x = np.array([zero, np.nextafter(zero, 9), zero * (1 - 1e-9), zero * (1 + 1e-5)])
    found = getattr(facula.special, f"bessel_j{order}")(facula.from_numpy(x)).numpy()
    apart, size = errors(found, of_order(mpmath.besselj, order), x)
    assert np.max(apart / size) < 2.0**-49


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BESSEL)
def test_edges_of_bessel_functions_are_pytorchs(name, dtype):
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, -1e-30, 1.0, -1.0, 5.0, 150.0], dtype)
    for points in (x, np.repeat(x, 60), x[::-1].copy()[::2]):
        ours = getattr(facula.special, name)(facula.from_numpy(points)).numpy()
        theirs = getattr(torch.special, name)(torch.from_numpy(points)).numpy()
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_zeta_is_exact_to_some_units(dtype):
    for s, q in (
        (uniform(1.01, 6, dtype), uniform(0.01, 20, dtype, 1)),
        (uniform(2, 64, dtype), logarithmic(1e-3, 1e6, dtype, 1)),
        (uniform(1.01, 20, dtype), logarithmic(1e-9, 1e12, dtype, 1)),
    ):
        found = facula.special.zeta(facula.from_numpy(s), facula.from_numpy(q)).numpy()
        kept = (found != 0) & (found < 1e30) & (found > 1e-30)
        apart, size = errors(found[kept], mpmath.zeta, s[kept], q[kept])
        assert np.max(apart / size) < (2.0**-50 if dtype is np.float64 else 0.52 * 2.0**-23)


def test_zeta_gives_the_same_bits_by_vectors_and_one_by_one():
    s, q = uniform(0.5, 80, np.float64), logarithmic(1e-5, 1e8, np.float64, 1)
    some = (s > 1) & (s < 64) & (q > 1e-2) & (q < 1e6)
    whole = facula.special.zeta(facula.from_numpy(s), facula.from_numpy(q)).numpy()
    fast = facula.special.zeta(facula.from_numpy(s[some]), facula.from_numpy(q[some])).numpy()
    np.testing.assert_array_equal(whole[some], fast)


def lower(a, x):
    return mpmath.gammainc(a, 0, x, regularized=True)


def upper(a, x):
    return mpmath.gammainc(a, x, mpmath.inf, regularized=True)


@pytest.mark.parametrize("name, exact", [("gammainc", lower), ("gammaincc", upper)])
def test_incomplete_gamma_functions_are_exact_to_some_units(name, exact):
    for a, x in (
        (uniform(0.1, 8, np.float64), uniform(0.1, 8, np.float64, 1)),
        (uniform(0.1, 60, np.float64), uniform(0.1, 120, np.float64, 1)),
    ):
        found = getattr(facula.special, name)(facula.from_numpy(a), facula.from_numpy(x)).numpy()
        apart, size = errors(found, exact, a, x)
        assert np.max(apart / np.maximum(size, 1e-3)) < 2.0**-44
        ours = getattr(facula.special, name)(*map(facula.from_numpy, (a, x))).float().numpy()
        theirs = getattr(torch.special, name)(*map(torch.from_numpy, (a, x))).float().numpy()
        np.testing.assert_allclose(ours, theirs, rtol=2e-6)


def test_incomplete_gamma_functions_of_huge_arguments():
    a = facula.tensor([0.5, 3.0, 1e5, 2.0], dtype=facula.float64)
    x = facula.tensor([1e300, 1e308, 1.2e5, 700.0], dtype=facula.float64)
    assert facula.special.gammainc(a, x).tolist() == [1.0, 1.0, 1.0, 1.0]
    assert facula.special.gammaincc(a, x)[:2].tolist() == [0.0, 0.0]
