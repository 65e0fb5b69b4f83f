"""Convolutions of zero-padded planes: rows share their padding, whatever stride and dilation do."""

import random

import facula
import pytest
import torch

CONVOLUTIONS = {1: "conv1d", 2: "conv2d", 3: "conv3d"}


def drawn(seed):
    """Sizes, kernels and options of a convolution that has results."""
    draw = random.Random(seed)
    rank = draw.choice([1, 2, 2, 2, 3])
    groups = draw.choice([1, 1, 2, 3])
    channels, rows = groups * draw.randint(2, 5), groups * draw.randint(2, 17)
    sizes, kernel, options = [], [], {"stride": [], "padding": [], "dilation": []}
    for _ in range(rank):
        taps, dilation = draw.randint(1, 5), draw.randint(1, 3)
        reach = dilation * (taps - 1) + 1
        padding = draw.randint(0, reach + 2)
        sizes.append(max(draw.randint(1, 34 if rank < 3 else 12), reach - 2 * padding))
        kernel.append(taps)
        for name, value in zip(options, (draw.randint(1, 3), padding, dilation), strict=True):
            options[name].append(value)
    image = (draw.randint(1, 3), channels, *sizes)
    return rank, image, (rows, channels // groups, *kernel), options | {"groups": groups}


def results(module, dtype, rank, image, weight, options):
    """The result and both gradients."""
    x, w = (module.tensor(t.tolist(), dtype=getattr(module, dtype)) for t in (image, weight))
    x.requires_grad_()
    w.requires_grad_()
    y = getattr(module.nn.functional, CONVOLUTIONS[rank])(x, w, **options)
    pattern = module.arange(y.numel(), dtype=y.dtype).reshape(y.shape) % 7 - 3
    y.backward(pattern)
    return [t.detach().double().numpy() for t in (y, x.grad, w.grad)]


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-9), ("float32", 1e-3)])
@pytest.mark.parametrize("kind", ["finite", "infinite input", "infinite weight"])
@pytest.mark.parametrize("seed", range(40))
def test_padded_planes(seed, kind, dtype, tolerance):
    rank, image, weight, options = drawn(seed)
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(image, generator=generator, dtype=torch.float64)
    w = torch.randn(weight, generator=generator, dtype=torch.float64)
    if kind == "infinite input":
        x.view(-1)[seed % x.numel()] = float("inf")
    if kind == "infinite weight":
        w.view(-1)[seed % w.numel()] = -float("inf")
    ours = results(facula, dtype, rank, x, w, options)
    expected = results(torch, "float64", rank, x, w, options)
    for got, want in zip(map(torch.from_numpy, ours), map(torch.from_numpy, expected), strict=True):
        # PyTorch multiplies infinite weights with zeros of the padding.
        want = torch.where(want.isnan(), got, want) if kind == "infinite weight" else want
        torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)
