"""The Kumaraswamy distribution."""

from __future__ import annotations

import facula
from facula.distributions import constraints
from facula.distributions.transformed_distribution import TransformedDistribution
from facula.distributions.transforms import AffineTransform, PowerTransform
from facula.distributions.uniform import Uniform
from facula.distributions.utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """Numbers of (0, 1) much like beta's, with the distribution function 1 - (1 - x^a)^b.

    Kumaraswamy, A generalized probability density function for double-bounded random processes
    (1980).

    Args:
        concentration1: a, positive.
        concentration0: b, positive.

    Example:
        >>> Kumaraswamy(1.0, 1.0).mean
        tensor(0.5000)
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(
            facula.full_like(self.concentration0, 0),
            facula.full_like(self.concentration0, 1),
            validate_args=validate_args,
        )
        transforms = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Kumaraswamy, _instance)
        new.concentration1 = self.concentration1.expand(batch_shape)
        new.concentration0 = self.concentration0.expand(batch_shape)
        return super().expand(batch_shape, new)

    def _moment(self, n):
        """The mean of the n-th power: b B(1 + n / a, b)."""
        a, b = self.concentration1, self.concentration0
        first = 1 + n / a
        log_beta = facula.lgamma(first) + facula.lgamma(b) - facula.lgamma(first + b)
        return b * facula.exp(log_beta)

    @property
    def mean(self):
        return self._moment(1)

    @property
    def mode(self):
        # The slope of the density is zero at ((a - 1) / (a b - 1))^(1 / a).
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)).pow(a.reciprocal())
        return facula.where((a < 1) | (b < 1), facula.nan, mode)

    @property
    def variance(self):
        return self._moment(2) - self.mean.pow(2)

    def entropy(self):
        a, b = self.concentration1, self.concentration0
        harmonic = facula.digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
