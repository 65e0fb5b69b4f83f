"""The chi-squared distribution."""

from __future__ import annotations

from facula.distributions import constraints
from facula.distributions.gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """Sums of `df` squares of standard normal numbers.

    Args:
        df: degrees of freedom, positive.

    Example:
        >>> Chi2(3.0).mean
        tensor(3.)
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args=None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(Chi2, _instance))

    @property
    def df(self):
        """Degrees of freedom."""
        return self.concentration * 2
