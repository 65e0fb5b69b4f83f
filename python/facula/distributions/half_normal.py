"""The half-normal distribution."""

from __future__ import annotations

import math

from facula.distributions._half import _Half
from facula.distributions.normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(_Half):
    """Absolute values of normal numbers around zero.

    Args:
        scale: their standard deviation, positive.

    Example:
        >>> HalfNormal(1.0).mean
        tensor(0.7979)
    """

    def __init__(self, scale, validate_args=None):
        super().__init__(Normal, scale, validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(HalfNormal, _instance))

    @property
    def mean(self):
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self):
        return self.scale.pow(2) * (1 - 2 / math.pi)
