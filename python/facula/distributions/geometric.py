"""The geometric distribution."""

from __future__ import annotations

import facula
import facula.nn.functional as F
from facula.distributions import constraints
from facula.distributions._probs_or_logits import ProbsAndLogits
from facula.distributions.distribution import Distribution
from facula.distributions.utils import broadcast_all, check_one_given

__all__ = ["Geometric"]


class Geometric(ProbsAndLogits, Distribution):
    """Numbers of failures before the first success.

    Args:
        probs: probabilities of success, in (0, 1]; or
        logits: their log odds.

    Raises:
        ValueError: both or neither are given, or a probability is not positive.

    Example:
        >>> Geometric(0.25).mean
        tensor(3.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args=None):
        check_one_given(self, probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        given = self.probs if probs is not None else self.logits
        super().__init__(given.size(), validate_args=validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            raise ValueError(
                f"Expected parameter probs (Tensor of shape {tuple(self.probs.shape)}) of "
                f"distribution {self!r} to be positive but found invalid values:\n{self.probs}"
            )

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Geometric, ("probs", "logits"), batch_shape, _instance)

    @property
    def mean(self):
        return 1.0 / self.probs - 1.0

    @property
    def mode(self):
        return facula.zeros_like(self.probs)

    @property
    def variance(self):
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        tiny = facula.finfo(self.probs.dtype).tiny
        with facula.no_grad():
            u = self.probs.new_empty(shape).uniform_(tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        failing = probs.clone(memory_format=facula.contiguous_format)
        failing[(probs == 1) & (value == 0)] = 0  # no failure: log 0 must not come in
        return value * (-failing).log1p() + self.probs.log()

    def entropy(self):
        both = F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return both / self.probs
