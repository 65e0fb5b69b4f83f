"""Samples of gamma and Dirichlet distributions, and how they move with their parameters."""

import facula
import numpy as np
import pytest
import torch

SHAPES = [0.05, 0.3, 1.0, 2.0, 7.9, 8.1, 30.0, 1e3, 1e5, 2e6]
CONCENTRATIONS = [[0.1, 1.0, 3.0], [20.0, 0.5, 4.0], [300.0, 2.0, 2.0], [1e4, 1e4, 5e3]]


def gamma_samples(library, dtype):
    library.manual_seed(0)
    alpha = library.tensor([SHAPES] * 20, dtype=getattr(library, dtype), requires_grad=True)
    return alpha, library._standard_gamma(alpha)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gamma_samples_are_the_same(dtype):
    (_, ours), (_, theirs) = (gamma_samples(library, dtype) for library in (facula, torch))
    np.testing.assert_array_equal(ours.detach().numpy(), theirs.detach().numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gamma_samples_move_the_same(dtype):
    """Within the accuracy of PyTorch's approximations."""
    gradients = []
    for library in (facula, torch):
        alpha, samples = gamma_samples(library, dtype)
        samples.sum().backward()
        gradients.append(alpha.grad.numpy())
    np.testing.assert_allclose(*gradients, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("alpha", SHAPES)
def test_gamma_gradient_is_that_of_the_quantile(alpha):
    from scipy.special import gammaincinv

    quantiles = np.array([0.001, 0.1, 0.5, 0.9, 0.999])
    samples, step = gammaincinv(alpha, quantiles), 1e-4 * alpha
    kept = samples > 1e-30
    slope = gammaincinv(alpha + step, quantiles) - gammaincinv(alpha - step, quantiles)
    got = facula._standard_gamma_grad(
        facula.full((len(samples),), alpha, dtype=facula.float64), facula.from_numpy(samples)
    )
    np.testing.assert_allclose(got.numpy()[kept], slope[kept] / (2 * step), rtol=2e-4)


def test_dirichlet_samples_are_the_same_and_move_the_same():
    samples, gradients = [], []
    for library in (facula, torch):
        library.manual_seed(0)
        c = library.tensor(CONCENTRATIONS, dtype=library.float64, requires_grad=True)
        x = library.distributions.Dirichlet(c).rsample() if library is torch else None
        x = facula._sample_dirichlet(c) if x is None else x
        (x * library.arange(12, dtype=library.float64).reshape(4, 3)).sum().backward()
        samples.append(x.detach().numpy())
        gradients.append(c.grad.numpy())
    np.testing.assert_array_equal(*samples)
    np.testing.assert_allclose(*gradients, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 3.0, 50.0, 2e4])
@pytest.mark.parametrize("beta", [0.3, 1.0, 8.0, 1e3])
def test_dirichlet_gradient_is_that_of_the_quantile(alpha, beta):
    from scipy.special import betainc, betaincinv
    from scipy.stats import beta as beta_distribution

    x, step = betaincinv(alpha, beta, np.array([0.01, 0.2, 0.5, 0.8, 0.99])), 1e-5 * alpha
    slope = (betainc(alpha + step, beta, x) - betainc(alpha - step, beta, x)) / (2 * step)
    wanted = -slope / beta_distribution(alpha, beta).pdf(x) / (1 - x)
    a, total = (facula.full((5,), v, dtype=facula.float64) for v in (alpha, alpha + beta))
    got = facula._dirichlet_grad(facula.from_numpy(x), a, total).numpy()
    kept = (x > 1e-30) & (x < 1 - 1e-10)
    np.testing.assert_allclose(got[kept], wanted[kept], rtol=1e-4, atol=1e-9)
