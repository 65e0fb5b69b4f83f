"""The relaxed categorical distribution."""

from __future__ import annotations

import facula
from facula.distributions import constraints
from facula.distributions._probs_or_logits import ProbsOfBase, ProbsOfCategorical
from facula.distributions.categorical import Categorical
from facula.distributions.distribution import Distribution
from facula.distributions.transformed_distribution import TransformedDistribution
from facula.distributions.transforms import ExpTransform
from facula.distributions.utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(ProbsOfCategorical, Distribution):
    """Logarithms of relaxed one-hot vectors.

    Maddison, Mnih and Teh, The Concrete distribution (2017); Jang, Gu and Poole, Categorical
    reparameterization with Gumbel-softmax (2017).

    Args:
        temperature: positive.
        probs: (..., n), weights of the categories; or
        logits: (..., n), their logarithms.

    Example:
        >>> ExpRelaxedCategorical(facula.tensor(1.0), facula.ones(3)).event_shape
        facula.Size([3])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    # The logarithm of a point of the simplex, which no constraint describes.
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(
            self._categorical.batch_shape,
            self._categorical.param_shape[-1:],
            validate_args=validate_args,
        )

    def expand(self, batch_shape, _instance=None):
        new = self._expanded_like(ExpRelaxedCategorical, batch_shape, _instance)
        new.temperature = self.temperature
        return new

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(facula.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        gumbels = -((-(u.log())).log())
        scores = (self.logits + gumbels) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value):
        n = self._categorical._num_events
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        log_scale = facula.full_like(self.temperature, float(n)).lgamma()
        log_scale = log_scale + self.temperature.log().mul(n - 1)
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + log_scale


class RelaxedOneHotCategorical(ProbsOfBase, TransformedDistribution):
    """Points of the simplex that a low temperature drives to its corners; differentiable.

    Args:
        temperature: positive.
        probs: (..., n), weights of the categories; or
        logits: (..., n), their logarithms.

    Example:
        >>> RelaxedOneHotCategorical(facula.tensor(1.0), facula.ones(3)).event_shape
        facula.Size([3])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(RelaxedOneHotCategorical, _instance)
        return super().expand(batch_shape, new)
