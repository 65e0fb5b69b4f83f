"""The Laplace distribution."""

from __future__ import annotations

import facula
from facula.distributions import constraints
from facula.distributions.distribution import Distribution
from facula.distributions.utils import broadcast_all

__all__ = ["Laplace"]


class Laplace(Distribution):
    """Numbers whose distance from `loc` is exponential, on either side.

    Args:
        loc: the mean.
        scale: the mean distance from it, positive.

    Example:
        >>> Laplace(0.0, 1.0).log_prob(facula.tensor(0.0))
        tensor(-0.6931)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Laplace, ("loc", "scale"), batch_shape, _instance)

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        return 2 * self.scale.pow(2)

    @property
    def stddev(self):
        return 2**0.5 * self.scale

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        u = self.loc.new_empty(shape).uniform_(facula.finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * facula.log1p(-u.abs())

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return -facula.log(2 * self.scale) - facula.abs(value - self.loc) / self.scale

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        offset = value - self.loc
        return 0.5 - 0.5 * offset.sign() * facula.expm1(-offset.abs() / self.scale)

    def icdf(self, value):
        offset = value - 0.5
        return self.loc - self.scale * offset.sign() * facula.log1p(-2 * offset.abs())

    def entropy(self):
        return 1 + facula.log(2 * self.scale)
