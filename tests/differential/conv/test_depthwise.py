"""Depthwise convolutions with the channels innermost: blocks, their borders and what is left."""

import itertools

import facula
import pytest
import torch

# Channels that fill vectors or leave some over; heights and widths around those of a block.
CHANNELS = (16, 33, 40)
SIZES = ((1, 1), (2, 9), (3, 4), (5, 6), (8, 7), (13, 21))
OPTIONS = {
    "plain": {"padding": 1},
    "no padding": {"padding": 0},
    "wide padding": {"padding": 2},
    "stride": {"padding": 1, "stride": 2},
    "dilation": {"padding": 2, "dilation": 2},
    "rows and columns apart": {"padding": (1, 0), "stride": (1, 2)},
}


def results(module, x, w, b, options):
    """The result and the gradients of image, weights and bias."""
    x, w, b = (module.from_numpy(t.numpy().copy()) for t in (x, w, b))
    x = x.contiguous(memory_format=module.channels_last)
    for t in (x, w, b):
        t.requires_grad_()
    y = module.nn.functional.conv2d(x, w, b, groups=x.shape[1], **options)
    pattern = (module.arange(y.numel()).reshape(y.shape) % 7 - 3).float()
    y.backward(pattern.contiguous(memory_format=module.channels_last))
    return [torch.from_numpy(t.detach().numpy()) for t in (y, x.grad, w.grad, b.grad)]


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("channels", CHANNELS)
def test_depthwise_channels_last(channels, name):
    options = OPTIONS[name]
    generator = torch.Generator().manual_seed(channels)
    padding = torch.tensor(options["padding"]).expand(2)
    reach = 2 * options.get("dilation", 1) + 1
    for batch, size in itertools.product((1, 2), SIZES):
        if any(n + 2 * int(p) < reach for n, p in zip(size, padding, strict=True)):
            continue
        x = torch.randn((batch, channels, *size), generator=generator)
        w = torch.randn((channels, 1, 3, 3), generator=generator)
        b = torch.randn(channels, generator=generator)
        for got, want in zip(*(results(m, x, w, b, options) for m in (facula, torch)), strict=True):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)
