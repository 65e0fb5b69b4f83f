"""Divergences of every registered pair beside PyTorch's."""

import warnings

import facula
import numpy as np
import pytest
import torch
import torch.distributions.kl
from distribution_cases import CASES, make
from facula.distributions.kl import _KL_REGISTRY


def names(registry):
    return {(p.__name__, q.__name__) for p, q in registry}


PAIRS = sorted(names(_KL_REGISTRY) - {("ExponentialFamily", "ExponentialFamily")})


def test_the_same_pairs_are_registered():
    assert names(_KL_REGISTRY) == names(torch.distributions.kl._KL_REGISTRY)


def divergence(library, of_p, of_q):
    """(value, gradients, class of the exception)."""
    (p, p_parameters), (q, q_parameters) = (make(library, n, grad=True) for n in (of_p, of_q))
    try:
        value = library.distributions.kl_divergence(p, q)
    except (NotImplementedError, ValueError, RuntimeError) as error:
        return None, [], type(error).__name__
    if not value.requires_grad or not np.isfinite(value.detach().numpy()).all():
        return value.detach().numpy(), [], None
    inputs = [*p_parameters.values(), *q_parameters.values()]
    gradients = library.autograd.grad(value.sum(), inputs, allow_unused=True)
    return value.detach().numpy(), gradients, None


def cases_of(kind):
    return [name for name in CASES if name.split()[0] == kind]


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_same_divergences(pair):
    checked = 0
    for of_p in cases_of(pair[0]):
        for of_q in cases_of(pair[1]):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of low degrees of freedom
                ours, theirs = (divergence(lib, of_p, of_q) for lib in (facula, torch))
            assert ours[2] == theirs[2]
            if ours[2] is None:
                np.testing.assert_allclose(ours[0], theirs[0], 1e-8, 1e-10)
            for a, b in zip(ours[1], theirs[1], strict=True):
                assert (a is None) == (b is None)
                if a is not None:
                    np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-7, 1e-8)
            checked += 1
    assert checked


@pytest.mark.parametrize(
    "name", ["Normal", "Gamma", "Dirichlet", "Beta", "Exponential", "Bernoulli"]
)
def test_bregman_divergence_of_families(name):
    """The form for all exponential families gives what the closed form of each gives."""
    from facula.distributions.kl import _kl_expfamily_expfamily

    p, _ = make(facula, name)
    q = p.expand((2, *p.batch_shape))
    wanted = facula.distributions.kl_divergence(p, q)
    np.testing.assert_allclose(
        _kl_expfamily_expfamily(p, q).detach().numpy(), wanted.numpy(), atol=1e-9
    )


def test_unknown_and_ambiguous_pairs(monkeypatch):
    for module in (facula.distributions.kl, torch.distributions.kl):
        monkeypatch.setattr(module, "_KL_REGISTRY", dict(module._KL_REGISTRY))
    for library in (facula, torch):
        d = library.distributions
        with pytest.raises(NotImplementedError, match="No KL"):
            d.kl_divergence(d.Normal(0.0, 1.0), d.StudentT(1.0))
        with pytest.raises(NotImplementedError):
            d.kl_divergence(d.Gamma(1.0, 1.0), d.Poisson(1.0))

        class Left(d.Normal):
            pass

        class Right(d.Normal):
            pass

        d.register_kl(Left, d.Normal)(lambda p, q: "left")
        d.register_kl(d.Normal, Right)(lambda p, q: "right")
        with pytest.warns(RuntimeWarning, match="Ambiguous"):
            assert d.kl_divergence(Left(0.0, 1.0), Right(0.0, 1.0)) == "left"
        with pytest.raises(TypeError):
            d.register_kl(3, d.Normal)
