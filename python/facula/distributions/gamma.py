"""The gamma distribution."""

from __future__ import annotations

import facula
from facula.distributions import constraints
from facula.distributions.exp_family import ExponentialFamily
from facula.distributions.utils import broadcast_all

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """Positive numbers, with the density rate^a x^(a - 1) exp(-rate x) / gamma(a).

    Args:
        concentration: the shape a, positive.
        rate: the inverse scale, positive.

    Example:
        >>> Gamma(2.0, 4.0).mean
        tensor(0.5000)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration, rate, validate_args=None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Gamma, ("concentration", "rate"), batch_shape, _instance)

    @property
    def mean(self):
        return self.concentration / self.rate

    @property
    def mode(self):
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self):
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        value = facula._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=facula.finfo(value.dtype).tiny)  # log_prob has to be finite
        return value

    def log_prob(self, value):
        value = facula.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        powers = facula.xlogy(self.concentration, self.rate)
        powers = powers + facula.xlogy(self.concentration - 1, value)
        return powers - self.rate * value - facula.lgamma(self.concentration)

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return facula.special.gammainc(self.concentration, self.rate * value)

    def entropy(self):
        a = self.concentration
        return a - facula.log(self.rate) + facula.lgamma(a) + (1.0 - a) * facula.digamma(a)

    @property
    def _natural_params(self):
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x, y):
        return facula.lgamma(x + 1) + (x + 1) * facula.log(-y.reciprocal())
