"""The Dirichlet distribution."""

from __future__ import annotations

import facula
import facula.nn.functional as F
from facula.distributions import constraints
from facula.distributions.exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """Points of the simplex.

    Args:
        concentration: (..., n), positive: how often each category was seen, so to say.

    Raises:
        ValueError: concentration has no dimension.

    Example:
        >>> Dirichlet(facula.tensor([1.0, 3.0])).mean
        tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration, validate_args=None):
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        names = ("concentration",)
        return self._expanded(Dirichlet, names, batch_shape, _instance, self.event_shape)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return facula._sample_dirichlet(self.concentration.expand(shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        c = self.concentration
        density = facula.xlogy(c - 1.0, value).sum(-1)
        return density + facula.lgamma(c.sum(-1)) - facula.lgamma(c).sum(-1)

    @property
    def mean(self):
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self):
        above_one = (self.concentration - 1).clamp(min=0.0)
        mode = above_one / above_one.sum(-1, True)
        # Where all are below one the density is highest in a corner.
        corner = (self.concentration < 1).all(dim=-1)
        best = mode[corner].argmax(dim=-1)
        mode[corner] = F.one_hot(best, above_one.shape[-1]).to(mode)
        return mode

    @property
    def variance(self):
        total = self.concentration.sum(-1, True)
        c = self.concentration
        return c * (total - c) / (total.pow(2) * (total + 1))

    def entropy(self):
        c, n = self.concentration, self.concentration.size(-1)
        total = c.sum(-1)
        log_beta = facula.lgamma(c).sum(-1) - facula.lgamma(total)
        of_total = (n - total) * facula.digamma(total)
        return log_beta - of_total - ((c - 1.0) * facula.digamma(c)).sum(-1)

    @property
    def _natural_params(self):
        return (self.concentration,)

    def _log_normalizer(self, x):
        return x.lgamma().sum(-1) - facula.lgamma(x.sum(-1))
