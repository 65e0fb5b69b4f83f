"""The half-Cauchy distribution."""

from __future__ import annotations

import math

import facula
from facula.distributions import constraints
from facula.distributions.cauchy import Cauchy
from facula.distributions.transformed_distribution import TransformedDistribution
from facula.distributions.transforms import AbsTransform

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
    """Absolute values of Cauchy numbers around zero.

    Args:
        scale: the median, positive.

    Example:
        >>> HalfCauchy(1.0).cdf(facula.tensor(1.0))
        tensor(0.5000)
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale, validate_args=None):
        super().__init__(
            Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args
        )

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(HalfCauchy, _instance))

    @property
    def scale(self):
        """The median."""
        return self.base_dist.scale

    @property
    def mean(self):
        shape = self._extended_shape()
        return facula.full(shape, math.inf, dtype=self.scale.dtype, device=self.scale.device)

    @property
    def mode(self):
        return facula.zeros_like(self.scale)

    @property
    def variance(self):
        return self.base_dist.variance

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value = facula.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        log_prob = self.base_dist.log_prob(value) + math.log(2)
        return facula.where(value >= 0, log_prob, -math.inf)

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob):
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self):
        return self.base_dist.entropy() - math.log(2)
