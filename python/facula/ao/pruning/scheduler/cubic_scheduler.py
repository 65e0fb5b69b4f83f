"""A schedule that rises fast at first and levels off, as a cubic function of the epoch."""

from __future__ import annotations

from .base_scheduler import BaseScheduler

__all__ = ["CubicSL"]


def _clamp(x, lo, hi):
    return max(lo, min(hi, x))


class CubicSL(BaseScheduler):
    """Levels that rise from `init_sl` to the sparsifier's own as a cubic function of the epoch.

    With s0 the first level, sf the last one and t the epoch the level is
    sf + (s0 - sf) (1 - (t - init_t) / (delta_t total_t))^3, kept between the two. From Zhu and
    Gupta, "To prune, or not to prune: exploring the efficacy of pruning for model compression".

    Args:
        sparsifier (BaseSparsifier): a prepared one.
        init_sl (float): the first level. init_t (int): the epoch at which it begins to rise.
        delta_t (int): epochs between two changes of the masks. total_t (int): their number.
        initially_zero (bool): no sparsity before `init_t`.
        last_epoch (int). verbose (bool): see `BaseScheduler`.
        All but the last two may be lists with a value for each group.

    Raises:
        ValueError: a list with another number of values than groups.

    Example:
        >>> sparsifier = facula.ao.pruning.WeightNormSparsifier(0.8)
        >>> scheduler = facula.ao.pruning.CubicSL(sparsifier, delta_t=1, total_t=10)
    """

    def __init__(
        self,
        sparsifier,
        init_sl=0.0,
        init_t=0,
        delta_t=10,
        total_t=100,
        initially_zero=False,
        last_epoch=-1,
        verbose=False,
    ):
        self.sparsifier = sparsifier
        self.init_sl = self._make_sure_a_list(init_sl)
        self.init_t = self._make_sure_a_list(init_t)
        self.delta_t = self._make_sure_a_list(delta_t)
        self.total_t = self._make_sure_a_list(total_t)
        self.initially_zero = self._make_sure_a_list(initially_zero)
        super().__init__(sparsifier, last_epoch, verbose)

    @staticmethod
    def sparsity_compute_fn(s_0, s_f, t, t_0, dt, n, initially_zero=False):
        """The level at epoch `t`.

        Args:
            s_0, s_f (float): first and last level. t, t_0 (int): this epoch and the first.
            dt, n (int): epochs between changes, and their number.
            initially_zero (bool): 0 before the first epoch.

        Returns:
            float
        """
        if initially_zero and t < t_0:
            return 0
        left = 1.0 - (t - t_0) / (dt * n)
        return _clamp(s_f + (s_0 - s_f) * left**3, s_0, s_f)

    def get_sl(self):
        self._warn_outside_step()
        options = zip(
            self.init_sl,
            self.base_sl,
            self.init_t,
            self.delta_t,
            self.total_t,
            self.initially_zero,
            strict=True,
        )
        return [
            self.sparsity_compute_fn(first, last, self.last_epoch, begin, every, times, zero)
            for first, last, begin, every, times, zero in options
        ]
