"""The half-Cauchy distribution."""

from __future__ import annotations

import math

import facula
from facula.distributions._half import _Half
from facula.distributions.cauchy import Cauchy

__all__ = ["HalfCauchy"]


class HalfCauchy(_Half):
    """Absolute values of Cauchy numbers around zero.

    Args:
        scale: the median, positive.

    Example:
        >>> HalfCauchy(1.0).cdf(facula.tensor(1.0))
        tensor(0.5000)
    """

    def __init__(self, scale, validate_args=None):
        super().__init__(Cauchy, scale, validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(HalfCauchy, _instance))

    @property
    def mean(self):
        shape = self._extended_shape()
        return facula.full(shape, math.inf, dtype=self.scale.dtype, device=self.scale.device)

    @property
    def variance(self):
        return self.base_dist.variance

    def _as_sample(self, value):
        # A number is taken too, as PyTorch takes it here and not for HalfNormal.
        return facula.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
