"""The generalized Pareto distribution."""

from __future__ import annotations

import facula
from facula.distributions import constraints
from facula.distributions.distribution import Distribution
from facula.distributions.utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """What exceeds a high threshold, in the limit (Pickands, 1975).

    With z = (x - loc) / scale, x is exceeded with probability (1 + c z)^(-1 / c), or exp(-z) where
    the concentration c is zero.

    Args:
        loc: the threshold.
        scale: positive.
        concentration: c.

    Example:
        >>> GeneralizedPareto(0.0, 1.0, 0.0).cdf(facula.tensor(1.0))
        tensor(0.6321)
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(self, loc, scale, concentration, validate_args=None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        names = ("loc", "scale", "concentration")
        return self._expanded(GeneralizedPareto, names, batch_shape, _instance)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        upper = self.loc - self.scale / self.concentration
        upper = facula.where(self.concentration < 0, upper, facula.inf)
        return constraints.interval(self.loc, upper)

    def _z(self, x):
        return (x - self.loc) / self.scale

    def _is_exponential(self):
        """Where the concentration is nearly zero, and one in its place."""
        zero = facula.zeros_like(self.concentration)
        is_zero = facula.isclose(self.concentration, zero)
        return is_zero, facula.where(is_zero, facula.ones_like(zero), self.concentration)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return self.icdf(facula.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        is_zero, c = self._is_exponential()
        exponent = 1 / c + facula.ones_like(z)
        log_density = facula.where(is_zero, -z, -exponent * facula.log1p(c * z))
        return log_density - self.scale.log()

    def log_survival_function(self, value):
        """The logarithm of the probability of more than `value`."""
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        is_zero, c = self._is_exponential()
        return facula.where(is_zero, -z, -facula.log1p(c * z) / c)

    def log_cdf(self, value):
        """The logarithm of the probability up to `value`."""
        return facula.log1p(-facula.exp(self.log_survival_function(value)))

    def cdf(self, value):
        return facula.exp(self.log_cdf(value))

    def icdf(self, value):
        is_zero, c = self._is_exponential()
        rest = facula.log1p(-value)
        exponential = self.loc - self.scale * rest
        power = self.loc + self.scale * facula.expm1(-c * rest) / c
        return facula.where(is_zero, exponential, power)

    @property
    def mean(self):
        c = self.concentration
        return facula.where(c < 1, self.loc + self.scale / (1 - c), facula.nan)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        c = self.concentration
        variance = self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c))
        return facula.where(c < 0.5, variance, facula.nan)

    def entropy(self):
        return (facula.log(self.scale) + self.concentration + 1).expand(self._batch_shape)
