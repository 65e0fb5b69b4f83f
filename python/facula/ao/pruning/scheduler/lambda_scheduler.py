"""A schedule that multiplies the first level by a function of the epoch."""

from __future__ import annotations

from .base_scheduler import BaseScheduler

__all__ = ["LambdaSL"]


class LambdaSL(BaseScheduler):
    """Levels that are the first ones times functions of the epoch.

    Args:
        sparsifier (BaseSparsifier): a prepared one.
        sl_lambda (callable or list of callable): of the epoch, for all groups or one for each.
        last_epoch (int). verbose (bool): see `BaseScheduler`.

    Raises:
        ValueError: not as many functions as groups.

    Example:
        >>> sparsifier = facula.ao.pruning.WeightNormSparsifier(0.8)
        >>> scheduler = facula.ao.pruning.LambdaSL(sparsifier, lambda epoch: 0.5**epoch)
    """

    def __init__(self, sparsifier, sl_lambda, last_epoch=-1, verbose=False):
        self.sparsifier = sparsifier
        self.sl_lambdas = self._make_sure_a_list(sl_lambda)
        super().__init__(sparsifier, last_epoch, verbose)

    def get_sl(self):
        self._warn_outside_step()
        factors = [factor(self.last_epoch) for factor in self.sl_lambdas]
        return [first * factor for first, factor in zip(self.base_sl, factors, strict=False)]
