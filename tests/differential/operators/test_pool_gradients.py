"""Gradients of average pooling where windows tile the input, and where they do not: PyTorch's."""

import facula
import numpy as np
import pytest
import torch

SHAPE = (2, 3, 12, 20)
# Windows that tile the input, that leave a rest or an edge out, that overlap, that lie apart.
CASES = {
    "two": lambda m, x: m.nn.functional.avg_pool2d(x, 2),
    "three by four": lambda m, x: m.nn.functional.avg_pool2d(x, (3, 4)),
    "a rest": lambda m, x: m.nn.functional.avg_pool2d(x, 5),
    "a rest that counts": lambda m, x: m.nn.functional.avg_pool2d(x, 5, ceil_mode=True),
    "an edge": lambda m, x: m.nn.functional.avg_pool2d(x, 4, 4, 2),
    "an overlap": lambda m, x: m.nn.functional.avg_pool2d(x, 3, 2),
    "gaps": lambda m, x: m.nn.functional.avg_pool2d(x, 2, 3),
    "a divisor": lambda m, x: m.nn.functional.avg_pool2d(x, 2, divisor_override=3),
    "a line": lambda m, x: m.nn.functional.avg_pool1d(x[0], 4),
    "a volume": lambda m, x: m.nn.functional.avg_pool3d(x, (3, 2, 2)),
    "adaptive": lambda m, x: m.nn.functional.adaptive_avg_pool2d(x, (4, 5)),
    "adaptive, overlapping": lambda m, x: m.nn.functional.adaptive_avg_pool2d(x, (5, 7)),
    "all": lambda m, x: m.nn.functional.adaptive_avg_pool2d(x, 1),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_gradients_of_averages(name, last, dtype):
    rng = np.random.default_rng(1)
    drawn, factors = rng.standard_normal((2, *SHAPE))
    found = []
    for m in (facula, torch):
        x = m.from_numpy(drawn).to(getattr(m, dtype))
        if last:
            x = x.contiguous(memory_format=m.channels_last)
        x.requires_grad_()
        y = CASES[name](m, x)
        weights = m.from_numpy(factors.ravel()[: y.numel()].copy()).to(y.dtype).reshape(y.shape)
        weights.view(-1)[0] = -0.0
        (y * weights).sum().backward()
        found.append(x.grad.double().numpy())
    np.testing.assert_allclose(*found, rtol=1e-6, atol=1e-7)
