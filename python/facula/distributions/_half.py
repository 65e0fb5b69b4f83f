"""What the distributions of absolute values of symmetric numbers share."""

from __future__ import annotations

import math

import facula
from facula.distributions import constraints
from facula.distributions.transformed_distribution import TransformedDistribution
from facula.distributions.transforms import AbsTransform


class _Half(TransformedDistribution):
    """Absolute values of numbers whose distribution `symmetric(0, scale)` mirrors itself at 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, symmetric, scale, validate_args):
        base = symmetric(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self):
        """The scale of the symmetric distribution."""
        return self.base_dist.scale

    @property
    def mode(self):
        return facula.zeros_like(self.scale)

    def _as_sample(self, value):
        return value

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value = self._as_sample(value)
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
