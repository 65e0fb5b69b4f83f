"""Student's t distribution."""

from __future__ import annotations

import math

import facula
from facula.distributions import constraints
from facula.distributions.chi2 import Chi2
from facula.distributions.distribution import Distribution
from facula.distributions.utils import _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Normal numbers divided by an estimate of their deviation from `df` others.

    Args:
        df: degrees of freedom, positive.
        loc: the centre.
        scale: positive.

    Example:
        >>> StudentT(4.0).variance
        tensor(2.)
    """

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._expanded(StudentT, ("df", "loc", "scale"), batch_shape, _instance)
        new._chi2 = self._chi2.expand(batch_shape)
        return new

    @property
    def mean(self):
        mean = self.loc.clone(memory_format=facula.contiguous_format)
        mean[self.df <= 1] = facula.nan
        return mean

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        finite = self.scale.pow(2) * self.df / (self.df - 2)
        unbounded = facula.where(self.df > 1, facula.inf, facula.nan)
        return facula.where(self.df > 2, finite, unbounded.to(finite.dtype))

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        x = _standard_normal(shape, dtype=self.df.dtype, device=self.df.device)
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (x * facula.rsqrt(z / self.df))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        normalizer = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + facula.lgamma(0.5 * self.df)
            - facula.lgamma(0.5 * (self.df + 1.0))
        )
        return -0.5 * (self.df + 1.0) * facula.log1p(y**2.0 / self.df) - normalizer

    def entropy(self):
        half, half_more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = facula.lgamma(half) + 0.5 * math.log(math.pi) - facula.lgamma(half_more)
        slopes = half_more * (facula.digamma(half_more) - facula.digamma(half))
        return self.scale.log() + slopes + 0.5 * self.df.log() + log_beta
