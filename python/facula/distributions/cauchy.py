"""The Cauchy distribution."""

from __future__ import annotations

import math

import facula
from facula.distributions import constraints
from facula.distributions.distribution import Distribution
from facula.distributions.utils import broadcast_all

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """Cauchy numbers: ratios of two normal ones, moved and scaled.

    Args:
        loc: the median.
        scale: half of the width at half of the height, positive.

    Example:
        >>> Cauchy(0.0, 1.0).cdf(facula.tensor(1.0))
        tensor(0.7500)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Cauchy, ("loc", "scale"), batch_shape, _instance)

    def _filled(self, value):
        shape = self._extended_shape()
        return facula.full(shape, value, dtype=self.loc.dtype, device=self.loc.device)

    @property
    def mean(self):
        return self._filled(facula.nan)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        return self._filled(facula.inf)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return self.loc + self.loc.new_empty(shape).cauchy_() * self.scale

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        square = ((value - self.loc) / self.scale) ** 2
        return -math.log(math.pi) - self.scale.log() - square.log1p()

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return facula.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value):
        return facula.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self):
        return math.log(4 * math.pi) + self.scale.log()
