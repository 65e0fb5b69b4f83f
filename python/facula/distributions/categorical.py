"""The categorical distribution."""

from __future__ import annotations

import facula
from facula.distributions import constraints
from facula.distributions._probs_or_logits import GivenProbsOrLogits
from facula.distributions.distribution import Distribution
from facula.distributions.utils import check_one_given

__all__ = ["Categorical"]


class Categorical(GivenProbsOrLogits, Distribution):
    """Numbers 0, ..., n - 1 of categories.

    Args:
        probs: (..., n), non-negative weights, which are divided by their sum; or
        logits: (..., n), logarithms of such.

    Raises:
        ValueError: both or neither are given, or without a dimension.

    Example:
        >>> Categorical(facula.tensor([1.0, 3.0])).probs
        tensor([0.2500, 0.7500])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _is_binary = False

    def __init__(self, probs=None, logits=None, validate_args=None):
        check_one_given(self, probs, logits)
        name, given = ("probs", probs) if probs is not None else ("logits", logits)
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = self._param = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = self._param = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._num_events = self._param.size()[-1]
        super().__init__(self._param.size()[:-1], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Categorical, _instance)
        batch_shape = facula.Size(batch_shape)
        for name in ("probs", "logits", "_param"):
            if name in self.__dict__:
                shape = batch_shape + facula.Size((self._num_events,))
                setattr(new, name, self.__dict__[name].expand(shape))
        new._num_events = self._num_events
        Distribution.__init__(new, batch_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    def _undefined(self):
        shape = self._extended_shape()
        return facula.full(shape, facula.nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mean(self):
        return self._undefined()

    @property
    def mode(self):
        return self.probs.argmax(dim=-1)

    @property
    def variance(self):
        return self._undefined()

    def sample(self, sample_shape=()):
        if not isinstance(sample_shape, facula.Size):
            sample_shape = facula.Size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        drawn = facula.multinomial(rows, sample_shape.numel(), True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        index, log_probs = facula.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return log_probs.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self):
        lowest = facula.finfo(self.logits.dtype).min  # 0 * log(0) is 0
        return -(self.logits.clamp(min=lowest) * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        values = facula.arange(self._num_events, dtype=facula.long, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values
