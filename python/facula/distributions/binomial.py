"""The binomial distribution."""

from __future__ import annotations

import facula
from facula.distributions import constraints
from facula.distributions._probs_or_logits import CountAndProbs
from facula.distributions.distribution import Distribution

__all__ = ["Binomial"]


def _positive_part(x):
    """max(x, 0), with the gradient 1/2 at zero."""
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(CountAndProbs, Distribution):
    """Numbers of successes.

    Args:
        total_count: how often is tried; a number or tensor of integers.
        probs: probabilities of success; or
        logits: their log odds.

    Raises:
        ValueError: both or neither of probs and logits are given.

    Example:
        >>> Binomial(4, facula.tensor([0.25, 0.5])).mean
        tensor([1., 2.])
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        super().__init__(total_count, probs, logits, validate_args)

    def expand(self, batch_shape, _instance=None):
        names = ("total_count", "probs", "logits", "_param")
        return self._expanded(Binomial, names, batch_shape, _instance)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def mode(self):
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        with facula.no_grad():
            return facula.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        ways = facula.lgamma(n + 1) - facula.lgamma(value + 1) - facula.lgamma(n - value + 1)
        # n log(1 + exp(logits)), which is -n log(1 - p), without overflow.
        misses = _positive_part(self.logits) + facula.log1p(facula.exp(-facula.abs(self.logits)))
        return value * self.logits + ways - n * misses

    def entropy(self):
        if self.total_count.min() != self.total_count.max():
            raise NotImplementedError("Inhomogeneous counts: entropy() expects one total_count")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(facula.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand=True):
        count = int(self.total_count.max())
        if self.total_count.min() != count:
            raise NotImplementedError(
                "Inhomogeneous counts: enumerate_support() expects one total_count"
            )
        values = facula.arange(1 + count, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values
