"""The inverse gamma distribution."""

from __future__ import annotations

import facula
from facula.distributions import constraints
from facula.distributions.gamma import Gamma
from facula.distributions.transformed_distribution import TransformedDistribution
from facula.distributions.transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """Reciprocals of gamma numbers.

    Args:
        concentration: the shape, positive.
        rate: the scale of the reciprocals, positive.

    Example:
        >>> InverseGamma(3.0, 1.0).mean
        tensor(0.5000)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration, rate, validate_args=None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        reciprocal = PowerTransform(-base.rate.new_ones(()))
        super().__init__(base, reciprocal, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(InverseGamma, _instance))

    @property
    def concentration(self):
        """The shape."""
        return self.base_dist.concentration

    @property
    def rate(self):
        """The scale."""
        return self.base_dist.rate

    @property
    def mean(self):
        mean = self.rate / (self.concentration - 1)
        return facula.where(self.concentration > 1, mean, facula.inf)

    @property
    def mode(self):
        return self.rate / (self.concentration + 1)

    @property
    def variance(self):
        a = self.concentration
        variance = self.rate.square() / ((a - 1).square() * (a - 2))
        return facula.where(a > 2, variance, facula.inf)

    def entropy(self):
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
