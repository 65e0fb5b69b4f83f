"""Parameters that are given as probabilities or as logits: what such distributions share."""

from __future__ import annotations

from facula.distributions.distribution import Distribution
from facula.distributions.utils import (
    broadcast_all,
    check_one_given,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)


class ProbsAndLogits:
    """`probs` and `logits` of a distribution that has one of them; the other follows when read.

    `_is_binary` says whether logits are log odds of one probability, or logarithms of those of
    several categories.
    """

    _is_binary = True

    @lazy_property
    def logits(self):
        """The log odds; for categories, the logarithms of the probabilities."""
        return probs_to_logits(self.probs, is_binary=self._is_binary)

    @lazy_property
    def probs(self):
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=self._is_binary)


class GivenProbsOrLogits(ProbsAndLogits):
    """The same for distributions that keep the parameter that was given as `_param`."""

    def _keep_given(self, probs, logits, *others):
        """Keep `probs` or `logits`, broadcast with other parameters; returns those."""
        check_one_given(self, probs, logits)
        *others, self._param = broadcast_all(*others, logits if probs is None else probs)
        setattr(self, "logits" if probs is None else "probs", self._param)
        return others

    def _new(self, *args, **kwargs):
        return self._param.new(*args, **kwargs)

    @property
    def param_shape(self):
        """The shape of the parameter that was given."""
        return self._param.size()


class CountAndProbs(GivenProbsOrLogits):
    """The same for distributions that also have a `total_count`."""

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        (count,) = self._keep_given(probs, logits, total_count)
        self.total_count = count.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)


class ProbsOfCategorical:
    """The same for distributions made of a Categorical, `_categorical`, which has the parameter."""

    def _expanded_like(self, cls, batch_shape, _instance):
        """`expand` of the class: the Categorical is expanded, other attributes are the caller's."""
        new = self._get_checked_instance(cls, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _new(self, *args, **kwargs):
        return self._categorical._new(*args, **kwargs)

    @property
    def probs(self):
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self):
        """Logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self):
        """The shape of the parameter that was given."""
        return self._categorical.param_shape


class ProbsOfBase:
    """The same for distributions that transform a relaxed one, which has the parameters."""

    @property
    def temperature(self):
        """The temperature."""
        return self.base_dist.temperature

    @property
    def probs(self):
        """The probabilities."""
        return self.base_dist.probs

    @property
    def logits(self):
        """The log odds; for categories, the logarithms of the probabilities."""
        return self.base_dist.logits
