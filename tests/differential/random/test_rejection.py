"""Samples that take a varying number of draws: PyTorch's numbers, and its generator afterwards."""

import facula
import numpy as np
import pytest
import torch

# Uniforms are made in blocks, the first of 16: sizes on either side of what a block serves.
SIZES = [1, 3, 5, 17, 700, 3000]
DRAWS = {
    "gamma": lambda m, x: m._standard_gamma(x),
    "poisson": lambda m, x: m.poisson(4 * x),
    "binomial": lambda m, x: m.binomial(m.floor(10 * x), x / 6.5),
    "multinomial": lambda m, x: m.multinomial(x[:60].reshape(1, -1), 50, replacement=True),
    "multinomial of many": lambda m, x: m.multinomial(x.reshape(1, -1), 50, replacement=True),
    "mixed": lambda m, x: m.cat([
        m._standard_gamma(x), m.randn(3).to(x.dtype), m._standard_gamma(x), m.poisson(x),
        m.randn(5, dtype=m.float64).to(x.dtype), m.rand(2).to(x.dtype),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", DRAWS)
def test_samples_and_states_are_the_same(name, dtype):
    for size in SIZES:
        shapes = np.random.default_rng(size).uniform(0.05, 6, size)
        found = []
        for library in (facula, torch):
            library.manual_seed(7)
            x = library.from_numpy(shapes).to(getattr(library, dtype))
            samples = DRAWS[name](library, x).numpy()
            found.append((samples.tolist(), library.get_rng_state().tolist()))
        assert found[0] == found[1], size
