"""The Weibull distribution."""

from __future__ import annotations

import facula
from facula.distributions import constraints
from facula.distributions.exponential import Exponential
from facula.distributions.transformed_distribution import TransformedDistribution
from facula.distributions.transforms import AffineTransform, PowerTransform
from facula.distributions.utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """Lifetimes x that are exceeded with probability exp(-(x / scale)^concentration).

    Args:
        scale: positive.
        concentration: the shape, positive.

    Example:
        >>> Weibull(1.0, 1.0).mean
        tensor(1.)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale, concentration, validate_args=None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(facula.ones_like(self.scale), validate_args=validate_args)
        super().__init__(base, self._stretch(), validate_args=validate_args)

    def _stretch(self):
        return [
            PowerTransform(exponent=self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Weibull, _instance)
        new.scale = self.scale.expand(batch_shape)
        new.concentration = self.concentration.expand(batch_shape)
        new.concentration_reciprocal = new.concentration.reciprocal()
        base = self.base_dist.expand(batch_shape)
        TransformedDistribution.__init__(new, base, new._stretch(), validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _moment(self, n):
        """The logarithm of the mean of the n-th power, for the scale one."""
        return facula.lgamma(1 + n * self.concentration_reciprocal)

    @property
    def mean(self):
        return self.scale * facula.exp(self._moment(1))

    @property
    def mode(self):
        share = (self.concentration - 1) / self.concentration
        return self.scale * share**self.concentration_reciprocal

    @property
    def variance(self):
        return self.scale.pow(2) * (facula.exp(self._moment(2)) - facula.exp(2 * self._moment(1)))

    def entropy(self):
        stretched = euler_constant * (1 - self.concentration_reciprocal)
        return stretched + facula.log(self.scale * self.concentration_reciprocal) + 1
