"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math

import facula
import facula.nn.functional as F
from facula.distributions import constraints
from facula.distributions._probs_or_logits import GivenProbsOrLogits
from facula.distributions.exp_family import ExponentialFamily
from facula.distributions.utils import (
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
)

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(GivenProbsOrLogits, ExponentialFamily):
    """Numbers of [0, 1], with a density proportional to p^x (1 - p)^(1 - x).

    Loaiza-Ganem and Cunningham, The continuous Bernoulli (2019). Formulas divide by what vanishes
    at p = 1/2: around it they are replaced by Taylor series.

    Args:
        probs: p, of (0, 1); or
        logits: its log odds.
        lims: where the series are used.

    Raises:
        ValueError: both or neither are given; with validate_args=True, probs are outside of [0, 1].

    Example:
        >>> ContinuousBernoulli(0.5).mean
        tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        self._keep_given(probs, logits)
        if probs is not None:
            # Checked before they are clamped, which would hide what is wrong.
            wanted = self.arg_constraints["probs"]
            if validate_args and not wanted.check(self.probs).all():
                raise ValueError("The parameter probs has invalid values")
            self.probs = self._param = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        names = ("probs", "logits", "_param")
        new = self._expanded(ContinuousBernoulli, names, batch_shape, _instance)
        new._lims = self._lims
        return new

    def _outside_unstable_region(self):
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self):
        """The probabilities, with those near 1/2 replaced so that the formulas stay finite."""
        fill = self._lims[0] * facula.ones_like(self.probs)
        return facula.where(self._outside_unstable_region(), self.probs, fill)

    def _cont_bern_log_norm(self):
        """The logarithm of the factor before p^x (1 - p)^(1 - x): 2 atanh(1 - 2 p) / (1 - 2 p)."""
        cut = self._cut_probs()
        is_low = cut <= 0.5
        low = facula.where(is_low, cut, facula.zeros_like(cut))
        high = facula.where(cut >= 0.5, cut, facula.ones_like(cut))
        numerator = facula.log(facula.abs(facula.log1p(-cut) - facula.log(cut)))
        divisor = facula.where(is_low, facula.log1p(-2.0 * low), facula.log(2.0 * high - 1.0))
        square = facula.pow(self.probs - 0.5, 2)
        series = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * square) * square
        return facula.where(self._outside_unstable_region(), numerator - divisor, series)

    @property
    def mean(self):
        cut = self._cut_probs()
        mean = cut / (2.0 * cut - 1.0) + 1.0 / (facula.log1p(-cut) - facula.log(cut))
        x = self.probs - 0.5
        series = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * facula.pow(x, 2)) * x
        return facula.where(self._outside_unstable_region(), mean, series)

    @property
    def stddev(self):
        return facula.sqrt(self.variance)

    @property
    def variance(self):
        cut = self._cut_probs()
        odds = facula.pow(facula.log1p(-cut) - facula.log(cut), 2)
        variance = cut * (cut - 1.0) / facula.pow(1.0 - 2.0 * cut, 2) + 1.0 / odds
        square = facula.pow(self.probs - 0.5, 2)
        series = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * square) * square
        return facula.where(self._outside_unstable_region(), variance, series)

    @lazy_property
    def probs(self):
        """p, kept inside of (0, 1)."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _uniform(self, sample_shape):
        shape = self._extended_shape(sample_shape)
        return facula.rand(shape, dtype=self.probs.dtype, device=self.probs.device)

    def rsample(self, sample_shape=()):
        return self.icdf(self._uniform(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        both = -F.binary_cross_entropy_with_logits(logits, value, reduction="none")
        return both + self._cont_bern_log_norm()

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        cut = self._cut_probs()
        power = facula.pow(cut, value) * facula.pow(1.0 - cut, 1.0 - value)
        cdf = (power + cut - 1.0) / (2.0 * cut - 1.0)
        cdf = facula.where(self._outside_unstable_region(), cdf, value)
        above = facula.where(facula.ge(value, 1.0), facula.ones_like(value), cdf)
        return facula.where(facula.le(value, 0.0), facula.zeros_like(value), above)

    def icdf(self, value):
        cut = self._cut_probs()
        miss = facula.log1p(-cut)
        quantile = facula.log1p(-cut + value * (2.0 * cut - 1.0)) - miss
        quantile = quantile / (facula.log(cut) - miss)
        return facula.where(self._outside_unstable_region(), quantile, value)

    def entropy(self):
        miss, hit = facula.log1p(-self.probs), facula.log(self.probs)
        return self.mean * (miss - hit) - self._cont_bern_log_norm() - miss

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        """log((exp(x) - 1) / x), by a series near zero."""
        outside = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = facula.where(outside, x, (self._lims[0] - 0.5) * facula.ones_like(x))
        exact = facula.log(facula.abs(facula.special.expm1(cut))) - facula.log(facula.abs(cut))
        series = 0.5 * x + facula.pow(x, 2) / 24.0 - facula.pow(x, 4) / 2880.0
        return facula.where(outside, exact, series)
