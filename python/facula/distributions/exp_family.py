"""Distributions that form an exponential family."""

from __future__ import annotations

import facula
from facula.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Densities exp(<t(x), theta> - F(theta) + k(x)) with natural parameters theta.

    Subclasses state theta, F (`_log_normalizer`) and the mean of k (`_mean_carrier_measure`);
    entropies and divergences follow by differentiating F, as Bregman divergences
    (Nielsen and Nock, 2010).

    Example:
        >>> from facula.distributions import Normal
        >>> isinstance(Normal(0.0, 1.0), ExponentialFamily)
        True
    """

    @property
    def _natural_params(self):
        raise NotImplementedError

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self):
        raise NotImplementedError

    def entropy(self):
        """The entropy: F - <theta, grad F> less the mean of k."""
        params = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*params)
        gradients = facula.autograd.grad(normalizer.sum(), params, create_graph=True)
        result = normalizer - self._mean_carrier_measure
        for param, gradient in zip(params, gradients, strict=True):
            result = result - (param * gradient).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
