"""The relaxed Bernoulli distribution."""

from __future__ import annotations

import facula
from facula.distributions import constraints
from facula.distributions._probs_or_logits import GivenProbsOrLogits, ProbsOfBase
from facula.distributions.distribution import Distribution
from facula.distributions.transformed_distribution import TransformedDistribution
from facula.distributions.transforms import SigmoidTransform
from facula.distributions.utils import broadcast_all, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(GivenProbsOrLogits, Distribution):
    """Log odds of relaxed Bernoulli draws: logistic numbers divided by a temperature.

    Maddison, Mnih and Teh, The Concrete distribution (2017).

    Args:
        temperature: positive.
        probs: probabilities of 1; or
        logits: their log odds.

    Raises:
        ValueError: both or neither of probs and logits are given.

    Example:
        >>> LogitRelaxedBernoulli(facula.tensor(1.0), 0.5).log_prob(facula.tensor(0.0))
        tensor(-1.3863)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature = temperature
        self._keep_given(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        names = ("probs", "logits", "_param")
        new = self._expanded(LogitRelaxedBernoulli, names, batch_shape, _instance)
        new.temperature = self.temperature
        return new

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        p = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(facula.rand(shape, dtype=p.dtype, device=p.device))
        return (u.log() - (-u).log1p() + p.log() - (-p).log1p()) / self.temperature

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value.mul(self.temperature)
        return self.temperature.log() + difference - 2 * difference.exp().log1p()


class RelaxedBernoulli(ProbsOfBase, TransformedDistribution):
    """Numbers of (0, 1) that a low temperature drives towards 0 and 1; differentiable.

    Args:
        temperature: positive.
        probs: probabilities of 1; or
        logits: their log odds.

    Example:
        >>> RelaxedBernoulli(facula.tensor(1.0), 0.5).log_prob(facula.tensor(0.5))
        tensor(0.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(RelaxedBernoulli, _instance))
