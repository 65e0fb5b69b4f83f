"""Square roots are the nearest numbers, whichever way a processor takes to them."""

import math

import facula
import numpy as np
import pytest


def root_of(x):
    return facula.from_numpy(x).sqrt().numpy()


def assert_same_bits(found, expected):
    bits = {4: np.int32, 8: np.int64}[expected.itemsize]
    assert (found.view(bits) == expected.view(bits)).all()


def test_roots_of_all_significands_of_floats():
    x = np.arange(0x3F800000, 0x40800000, dtype=np.int32).view(np.float32)  # from 1 to 4
    assert_same_bits(root_of(x), np.sqrt(x))


def square_roots_modulo(residue, bits):
    """The m with m * m = residue modulo 2**bits, of a residue that is 1 modulo 8."""
    m = 1
    for k in range(3, bits):
        if (m * m - residue) >> k & 1:
            m += 1 << (k - 1)
    half = 1 << (bits - 1)
    return {(sign * m + shift) % (2 * half) for sign in (1, -1) for shift in (0, half)}


def doubles_beside_squares_of_halves(largest):
    """Doubles x with m * m - x * 2**bits = residue for an odd m of 54 bits: root(x) is all but m.

    x has 53 bits, so that bits is 54 for an x in [1, 2) and 55 for one in [2, 4).
    """
    found = []
    for bits in (54, 55):
        for residue in range(1 - 8 * largest, 8 * largest, 8):
            for root in square_roots_modulo(residue, bits):
                for m in range(root, 1 << 54, 1 << bits):
                    x = (m * m - residue) >> bits
                    if 1 << 52 <= x < 1 << 53:
                        found.append(math.ldexp(x, bits - 106))
    return np.array(found)


def test_roots_of_doubles_beside_squares_of_halves():
    x = doubles_beside_squares_of_halves(largest=500)
    assert len(x) > 1000
    assert_same_bits(root_of(x), np.array([math.sqrt(v) for v in x]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_roots_of_every_size_and_kind(dtype):
    facts = np.finfo(dtype)
    span = np.arange(facts.minexp - facts.nmant, facts.maxexp, dtype=np.int32)
    powers = np.ldexp(dtype(1.375), span).astype(dtype)
    special = np.array([0.0, -0.0, np.inf, facts.tiny, facts.max, facts.smallest_subnormal], dtype)
    for x in (powers, special, np.concatenate([powers[40:170], special, powers[60:190]])):
        assert_same_bits(root_of(x), np.sqrt(x))
    with np.errstate(invalid="ignore"):
        assert np.isnan(root_of(np.array([-1, np.nan, -np.inf] * 50, dtype))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_roots_and_their_inverses_of_strided_rows(dtype):
    x = np.random.default_rng(0).random((70, 131)).astype(dtype) + dtype(0.1)
    t = facula.from_numpy(x)
    for view, expected in ((t.t(), x.T), (t[:, ::3], x[:, ::3]), (t[1:, 1], x[1:, 1])):
        assert_same_bits(view.sqrt().numpy(), np.sqrt(expected))
        assert_same_bits(view.rsqrt().numpy(), dtype(1) / np.sqrt(expected))
