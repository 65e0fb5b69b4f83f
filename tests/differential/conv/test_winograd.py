"""3x3 convolutions of many channels: PyTorch's results whatever the sizes, layout and values."""

import facula
import numpy as np
import pytest
import torch

INF = float("inf")


def numbers(*shape, seed=3):
    """Reproducible float32 values."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# name: shape of the input, output channels, padding. Channels above 90 share the weights' products
# out, below that every thread takes tiles of its own.
SHAPES = {
    "even": ((2, 32, 12, 8), 48, 1),
    "odd": ((3, 48, 17, 9), 32, 1),
    "no padding": ((2, 32, 11, 13), 32, 0),
    "wide padding": ((2, 32, 9, 10), 32, 2),
    "two paddings": ((4, 32, 9, 10), 64, (2, 0)),
    "one image": ((1, 64, 28, 28), 32, 1),
    "many channels": ((2, 160, 13, 10), 96, 1),
    "many channels, odd": ((5, 128, 7, 7), 128, 1),
    "few inputs": ((2, 16, 20, 21), 64, 1),
}


def channels_last(m, t):
    return t.contiguous(memory_format=m.channels_last)


def every_other(m, t):
    """The same values, two elements apart."""
    return m.stack([t, t + 1], -1)[..., 0]


LAYOUTS = {
    "contiguous": lambda m, t: t,
    "channels last": channels_last,
    "apart": every_other,
    "rows and columns exchanged": lambda m, t: t.transpose(2, 3).contiguous().transpose(2, 3),
}


def run(m, shape, rows, padding, layout, dtype="float32", spoil=None):
    """Result and gradients by input, weight and bias, as arrays."""
    arrays = [numbers(*shape), numbers(rows, shape[1], 3, 3, seed=4), numbers(rows, seed=5)]
    if spoil is not None:
        spoil(*arrays)
    x, w, b = (m.from_numpy(a).to(getattr(m, dtype)) for a in arrays)
    x, w = (LAYOUTS[layout](m, t) for t in (x, w))
    for t in (x, w, b):
        t.requires_grad_()
    y = m.nn.functional.conv2d(x, w, b, padding=padding)
    seed = np.cos(np.arange(int(np.prod(y.shape)))).astype(np.float32).reshape(tuple(y.shape))
    grads = m.autograd.grad(y, (x, w, b), LAYOUTS[layout](m, m.from_numpy(seed).to(y.dtype)))
    return [t.detach().double().numpy() for t in (y, *grads)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", SHAPES)
def test_results_and_gradients(name, layout):
    exact = run(torch, *SHAPES[name], layout, "float64")
    for found, wanted in zip(run(facula, *SHAPES[name], layout), exact, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6 * np.abs(wanted).max())


@pytest.mark.parametrize("name", ["odd", "many channels"])
def test_threads_do_not_change_bits(name):
    before, found = facula.get_num_threads(), []
    try:
        for threads in (1, 2, 3, 8):
            facula.set_num_threads(threads)
            found.append(run(facula, *SHAPES[name], "contiguous"))
    finally:
        facula.set_num_threads(before)
    for other in found[1:]:
        for first, second in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(first, second)


def infinite_input(x, w, b):
    x[1, 3, 4, 5] = INF


def nan_input(x, w, b):
    x[0, 1, 0, 0] = np.nan


def infinite_weight(x, w, b):
    w[2, 3, 0, 1] = -INF


def infinite_bias(x, w, b):
    b[1] = INF


def large_inputs(x, w, b):
    """Sums of two inputs overflow, those of products do not."""
    x[:] = np.where(x > 0, np.float32(2e38), np.float32(-2e38))
    w *= np.float32(1e-6)


def large_weights(x, w, b):
    w[:] = np.where(w > 0, np.float32(3e38), np.float32(-3e38))
    x *= np.float32(1e-6)


@pytest.mark.parametrize("layout", ["contiguous", "channels last"])
@pytest.mark.parametrize(
    "spoil",
    [infinite_input, nan_input, infinite_weight, infinite_bias],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("name", ["odd", "many channels"])
def test_what_is_not_finite_stays_where_it_belongs(name, spoil, layout):
    theirs = run(torch, *SHAPES[name], layout, spoil=spoil)
    ours = run(facula, *SHAPES[name], layout, spoil=spoil)
    for found, wanted in zip(ours, theirs, strict=True):
        finite = np.isfinite(wanted)
        np.testing.assert_array_equal(found[~finite], wanted[~finite])
        scale = np.abs(wanted[finite]).max(initial=0)
        np.testing.assert_allclose(found[finite], wanted[finite], rtol=0, atol=1e-5 * scale)


@pytest.mark.parametrize("spoil", [large_inputs, large_weights], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", ["odd", "many channels"])
def test_results_are_finite_where_only_sums_of_the_method_overflow(name, spoil):
    theirs, ours = (run(m, *SHAPES[name], "contiguous", spoil=spoil)[0] for m in (torch, facula))
    assert np.isfinite(theirs).all()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * np.abs(theirs).max())


def test_transposed_convolution():
    found = []
    for m in (facula, torch):
        x, w = m.from_numpy(numbers(2, 32, 9, 11)), m.from_numpy(numbers(32, 48, 3, 3, seed=4))
        b = m.from_numpy(numbers(48, seed=5))
        found.append(m.nn.functional.conv_transpose2d(x, w, b, padding=1).numpy())
    np.testing.assert_allclose(*found, rtol=0, atol=1e-4)
