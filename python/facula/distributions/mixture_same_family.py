"""Mixtures of distributions of one class."""

from __future__ import annotations

import facula
from facula.distributions import constraints
from facula.distributions.categorical import Categorical
from facula.distributions.constraints import MixtureSameFamilyConstraint
from facula.distributions.distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """Draws from components that are chosen at random, all of one class.

    Args:
        mixture_distribution: a Categorical, which chooses.
        component_distribution: a distribution whose last batch dimension has the components.

    Raises:
        ValueError: a wrong class, or batch shapes that do not fit.

    Example:
        >>> from facula.distributions import Categorical, Normal
        >>> mix = Categorical(facula.ones(2))
        >>> MixtureSameFamily(mix, Normal(facula.tensor([0.0, 4.0]), 1.0)).mean
        tensor(2.)
    """

    arg_constraints = {}
    has_rsample = False

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                "The Mixture distribution needs to be an instance of Categorical; got "
                f"{type(mixture_distribution).__name__}"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution need to be an instance of Distribution; got "
                f"{type(component_distribution).__name__}"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        batch_shape = self._component_distribution.batch_shape[:-1]
        self._check_batch_shapes(batch_shape)
        self._num_component = component_distribution.batch_shape[-1]
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    def _check_batch_shapes(self, batch_shape):
        of_mixture = self._mixture_distribution.batch_shape
        for size1, size2 in zip(reversed(of_mixture), reversed(batch_shape), strict=False):
            if size1 != 1 and size2 != 1 and size1 != size2:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({of_mixture}) is not compatible with "
                    f"`component_distribution.batch_shape` ({batch_shape})"
                )
        chosen = self._mixture_distribution.logits.shape[-1]
        there = self._component_distribution.batch_shape[-1]
        if chosen != there:
            raise ValueError(
                f"`mixture_distribution component` ({chosen}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({there})"
            )

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        batch_shape = facula.Size(batch_shape)
        of_components = batch_shape + (self._num_component,)
        new._component_distribution = self._component_distribution.expand(of_components)
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component = self._num_component
        new._event_ndims = self._event_ndims
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property
    def support(self):
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self):
        """The distribution that chooses components."""
        return self._mixture_distribution

    @property
    def component_distribution(self):
        """The components."""
        return self._component_distribution

    @property
    def mean(self):
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        return facula.sum(probs * self.component_distribution.mean, dim=-1 - self._event_ndims)

    @property
    def variance(self):
        # Law of total variance: the mean of the variances and the variance of the means.
        dim = -1 - self._event_ndims
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        inside = facula.sum(probs * self.component_distribution.variance, dim=dim)
        offset = self.component_distribution.mean - self._pad(self.mean)
        return inside + facula.sum(probs * offset.pow(2.0), dim=dim)

    def cdf(self, x):
        x = self._pad(x)
        probs = self.mixture_distribution.probs
        return facula.sum(self.component_distribution.cdf(x) * probs, dim=-1)

    def log_prob(self, x):
        if self._validate_args:
            self._validate_sample(x)
        log_prob = self.component_distribution.log_prob(self._pad(x))
        log_mix = facula.log_softmax(self.mixture_distribution.logits, dim=-1)
        return facula.logsumexp(log_prob + log_mix, dim=-1)

    def sample(self, sample_shape=()):
        with facula.no_grad():
            sample_shape = facula.Size(sample_shape)
            dim = len(sample_shape) + len(self.batch_shape)
            event_shape = self.event_shape
            chosen = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            index = chosen.reshape(chosen.shape + facula.Size([1] * (len(event_shape) + 1)))
            repeats = facula.Size([1] * len(chosen.shape)) + facula.Size([1]) + event_shape
            return facula.gather(drawn, dim, index.repeat(repeats)).squeeze(dim)

    def _pad(self, x):
        """Values with a dimension for the components."""
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x):
        """Probabilities with dimensions that line up with those of the components."""
        of_batch = len(self.batch_shape) - len(self.mixture_distribution.batch_shape)
        ones = facula.Size([1])
        return x.reshape(x.shape[:-1] + of_batch * ones + x.shape[-1:] + self._event_ndims * ones)

    def __repr__(self):
        parts = f"{self.mixture_distribution},\n  {self.component_distribution}"
        return f"MixtureSameFamily(\n  {parts})"
