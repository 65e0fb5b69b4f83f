"""The F distribution."""

from __future__ import annotations

import facula
from facula.distributions import constraints
from facula.distributions.distribution import Distribution
from facula.distributions.gamma import Gamma
from facula.distributions.utils import broadcast_all

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """Ratios of two mean squares of normal numbers.

    Args:
        df1: degrees of freedom of the numerator, positive.
        df2: degrees of freedom of the denominator, positive.

    Example:
        >>> FisherSnedecor(3.0, 4.0).mean
        tensor(2.)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1, df2, validate_args=None):
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._expanded(FisherSnedecor, ("df1", "df2"), batch_shape, _instance)
        new._gamma1 = self._gamma1.expand(batch_shape)
        new._gamma2 = self._gamma2.expand(batch_shape)
        return new

    def _above(self, df, bound):
        """Degrees of freedom, NaN up to a bound."""
        return facula.where(df > bound, df, facula.nan)

    @property
    def mean(self):
        df2 = self._above(self.df2, 2)
        return df2 / (df2 - 2)

    @property
    def mode(self):
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return facula.where(self.df1 <= 2, facula.nan, mode)

    @property
    def variance(self):
        df1, df2 = self.df1, self._above(self.df2, 4)
        return 2 * df2.pow(2) * (df1 + df2 - 2) / (df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        tiny = facula.finfo(self.df2.dtype).tiny
        x1 = self._gamma1.rsample(sample_shape).view(shape)
        x2 = self._gamma2.rsample(sample_shape).view(shape)
        x2.clamp_(min=tiny)
        ratio = x1 / x2
        ratio.clamp_(min=tiny)
        return ratio

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        half1, half2, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        log_beta = half1.lgamma() + half2.lgamma() - (half1 + half2).lgamma()
        powers = half1 * ratio.log() + (half1 - 1) * facula.log(value)
        return powers - (half1 + half2) * facula.log1p(ratio * value) - log_beta
