"""The negative binomial distribution."""

from __future__ import annotations

import facula
import facula.nn.functional as F
from facula.distributions import constraints
from facula.distributions._probs_or_logits import CountAndProbs
from facula.distributions.distribution import Distribution
from facula.distributions.gamma import Gamma
from facula.distributions.utils import lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(CountAndProbs, Distribution):
    """Numbers of successes before `total_count` failures.

    Args:
        total_count: not negative; need not be an integer.
        probs: probabilities of success, in [0, 1); or
        logits: their log odds.

    Raises:
        ValueError: both or neither of probs and logits are given.

    Example:
        >>> NegativeBinomial(3, facula.tensor(0.5)).mean
        tensor(3.)
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def expand(self, batch_shape, _instance=None):
        names = ("total_count", "probs", "logits", "_param")
        return self._expanded(NegativeBinomial, names, batch_shape, _instance)

    @property
    def mean(self):
        return self.total_count * facula.exp(self.logits)

    @property
    def mode(self):
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self):
        return self.mean / facula.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self):
        """The rates of the Poisson numbers that these are."""
        return Gamma(
            concentration=self.total_count, rate=facula.exp(-self.logits), validate_args=False
        )

    def sample(self, sample_shape=()):
        with facula.no_grad():
            return facula.poisson(self._gamma.sample(sample_shape=sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        chances = n * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        ways = facula.lgamma(n + value) - facula.lgamma(1.0 + value) - facula.lgamma(n)
        return chances + ways.masked_fill(n + value == 0.0, 0.0)
