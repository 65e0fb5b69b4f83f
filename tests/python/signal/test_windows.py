"""facula.signal.windows: closed forms, what all windows share, errors."""

import doctest
import math

import facula
import pytest
from facula.signal import windows

EXTRA = {"general_cosine": {"a": [0.5, 0.3, 0.2]}}


def window(name, M, **options):
    return getattr(windows, name)(M, **EXTRA.get(name, {}), **options)


@pytest.mark.parametrize("name", windows.__all__)
def test_symmetric_and_periodic(name):
    for M in (2, 5, 8):
        values = window(name, M, dtype=facula.float64)
        facula.testing.assert_close(values, values.flip(0))
        longer = window(name, M + 1, dtype=facula.float64)
        facula.testing.assert_close(window(name, M, sym=False, dtype=facula.float64), longer[:M])


@pytest.mark.parametrize("name", windows.__all__)
def test_short_windows(name):
    assert window(name, 0).shape == (0,)
    assert window(name, 1, sym=False).tolist() == [1.0]


@pytest.mark.parametrize("name", windows.__all__)
def test_options(name):
    assert window(name, 3, dtype=facula.float64).dtype == facula.float64
    assert window(name, 3, device="meta").is_meta
    assert window(name, 3, requires_grad=True).requires_grad
    for bad in ({"dtype": facula.float16}, {"layout": facula.sparse_coo}):
        with pytest.raises(ValueError, match="must be"):
            window(name, 3, **bad)
    with pytest.raises(ValueError, match=rf"^{name}.*M must not be negative; got -1"):
        window(name, -1)
    with pytest.raises(TypeError, match=rf"^{name}.*M must be an int; got str"):
        window(name, "3")


FORMS = {
    "hann": lambda x: math.sin(math.pi * x) ** 2,
    "hamming": lambda x: 0.54 - 0.46 * math.cos(2 * math.pi * x),
    "bartlett": lambda x: 1 - abs(2 * x - 1),
    "blackman": lambda x: (
        0.42 - 0.5 * math.cos(2 * math.pi * x) + 0.08 * math.cos(4 * math.pi * x)
    ),
    "cosine": lambda x: math.sin(math.pi * (x * 10 + 0.5) / 11),
    "gaussian": lambda x: math.exp(-(((x - 0.5) * 10) ** 2) / 2),
    "exponential": lambda x: math.exp(-abs(x - 0.5) * 10),
}


@pytest.mark.parametrize("name", FORMS)
def test_closed_form(name):
    values = window(name, 11, dtype=facula.float64).tolist()
    assert values == pytest.approx([FORMS[name](n / 10) for n in range(11)], abs=1e-12)


BAD = [
    ("gaussian", {"std": 0}, ValueError),
    ("exponential", {"tau": -1.0}, ValueError),
    ("exponential", {"center": 1.0}, ValueError),
    ("kaiser", {"beta": -1.0}, ValueError),
    ("general_cosine", {"a": []}, ValueError),
    ("general_cosine", {"a": 3}, TypeError),
]


@pytest.mark.parametrize("name, options, error", BAD)
def test_bad_parameters(name, options, error):
    with pytest.raises(error, match=f"^{name}"):
        getattr(windows, name)(4, **options)


def test_examples():
    assert doctest.testmod(windows, extraglobs={"facula": facula}).failed == 0
