"""The logistic-normal distribution."""

from __future__ import annotations

from facula.distributions import constraints
from facula.distributions.independent import Independent
from facula.distributions.normal import Normal
from facula.distributions.transformed_distribution import TransformedDistribution
from facula.distributions.transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Points of the simplex, broken off a stick by shares whose log odds are normal.

    Args:
        loc: (..., n), the means of the log odds.
        scale: (..., n), their standard deviations, positive.

    Example:
        >>> LogisticNormal(facula.zeros(2), facula.ones(2)).event_shape
        facula.Size([3])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(LogisticNormal, _instance))

    def _normal(self):
        base = self.base_dist
        return base.base_dist if isinstance(base, Independent) else base

    @property
    def loc(self):
        """The means of the log odds."""
        return self._normal().loc

    @property
    def scale(self):
        """The standard deviations of the log odds."""
        return self._normal().scale
