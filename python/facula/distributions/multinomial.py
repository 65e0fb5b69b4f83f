"""The multinomial distribution."""

from __future__ import annotations

import facula
from facula.distributions import constraints
from facula.distributions._probs_or_logits import ProbsOfCategorical
from facula.distributions.binomial import Binomial
from facula.distributions.categorical import Categorical
from facula.distributions.distribution import Distribution
from facula.distributions.utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(ProbsOfCategorical, Distribution):
    """How often each category comes in `total_count` draws.

    Args:
        total_count: the number of draws.
        probs: (..., n), weights of the categories; or
        logits: (..., n), their logarithms.

    Raises:
        NotImplementedError: total_count is not an int.

    Example:
        >>> Multinomial(4, facula.tensor([1.0, 3.0])).mean
        tensor([1., 3.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError(
                "Multinomial(): expected one int as total_count; got inhomogeneous counts"
            )
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(
            self._categorical.batch_shape,
            self._categorical.param_shape[-1:],
            validate_args=validate_args,
        )

    def expand(self, batch_shape, _instance=None):
        new = self._expanded_like(Multinomial, batch_shape, _instance)
        new.total_count = self.total_count
        new._binomial = Binomial(total_count=self.total_count, probs=new.probs)
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    @property
    def mean(self):
        return self.probs * self.total_count

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        sample_shape = facula.Size(sample_shape)
        drawn = self._categorical.sample(facula.Size((self.total_count,)) + sample_shape)
        drawn = drawn.movedim(0, -1)  # (samples, batch, draws)
        counts = drawn.new_zeros(self._extended_shape(sample_shape))
        counts.scatter_add_(-1, drawn, facula.ones_like(drawn))
        return counts.type_as(self.probs)

    def entropy(self):
        n = facula.tensor(self.total_count)
        categories = n * self._categorical.entropy() - facula.lgamma(n + 1)
        counts = self._binomial.enumerate_support(expand=False)[1:]
        chances = facula.exp(self._binomial.log_prob(counts))
        return categories + (chances * facula.lgamma(counts + 1)).sum([0, -1])

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.clone(memory_format=facula.contiguous_format)
        ways = facula.lgamma(value.sum(-1) + 1) - facula.lgamma(value + 1).sum(-1)
        logits[(value == 0) & (logits == -facula.inf)] = 0  # 0 * log(0) is 0
        return ways + (logits * value).sum(-1)
