"""Strides of transforms are PyTorch's, and meta tensors have those of real ones."""

import random

import facula
import pytest
import torch


def _case(rng, m, dtype, device="cpu"):
    """A tensor with dimensions in any order in memory, and some of its dimensions."""
    rank = rng.randint(1, 4)
    sizes = [rng.randint(2, 4) for _ in range(rank)]
    order = rng.sample(range(rank), rank)
    laid = m.zeros([sizes[d] for d in order], dtype=getattr(m, dtype), device=device)
    t = laid.permute([order.index(d) for d in range(rank)])
    if rng.random() < 0.2:
        d = rng.randrange(rank)
        t = t.narrow(d, 0, 1).expand(sizes)
    return t, rng.sample(range(rank), rng.randint(1, rank))


CALLS = {
    "_fft_c2c": ("complex64", lambda m, t, dims, rng: m._fft_c2c(t, dims, 0, True)),
    "_fft_r2c": ("float32", lambda m, t, dims, rng: m._fft_r2c(t, dims, 0, True)),
    "_fft_r2c both": ("float32", lambda m, t, dims, rng: m._fft_r2c(t, dims, 0, False)),
    "_fft_c2r": (
        "complex64",
        lambda m, t, dims, rng: m._fft_c2r(
            t, dims, 0, 2 * (t.shape[dims[-1]] - 1) + rng.randint(0, 1)
        ),
    ),
    "fftn": ("complex64", lambda m, t, dims, rng: m.fft.fftn(t, dim=dims)),
    "fftn longer": ("float32", lambda m, t, dims, rng: m.fft.fftn(t, s=[5] * len(dims), dim=dims)),
    "fftn shorter": ("float32", lambda m, t, dims, rng: m.fft.fftn(t, s=[1] * len(dims), dim=dims)),
    "ihfftn": ("float32", lambda m, t, dims, rng: m.fft.ihfftn(t, dim=dims)),
    "hfftn": ("complex64", lambda m, t, dims, rng: m.fft.hfftn(t, dim=dims)),
    "irfftn": ("complex64", lambda m, t, dims, rng: m.fft.irfftn(t, s=[3] * len(dims), dim=dims)),
    "ifft": ("float32", lambda m, t, dims, rng: m.fft.ifft(t, dim=dims[0])),
}


@pytest.mark.parametrize("name", CALLS)
def test_strides(name):
    dtype, call = CALLS[name]
    for seed in range(60):
        found = {}
        for m, device in ((torch, "cpu"), (facula, "cpu"), (facula, "meta")):
            rng = random.Random(seed)
            result = call(m, *_case(rng, m, dtype, device), rng)
            found[m.__name__, device] = (tuple(result.shape), result.stride(), result.is_conj())
        assert len(set(found.values())) == 1, (seed, found)
