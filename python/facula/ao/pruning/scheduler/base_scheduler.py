"""What all schedulers of sparsity share."""

from __future__ import annotations

import warnings

from ._step_counter import count_steps, warn_of_order

__all__ = ["BaseScheduler"]


class BaseScheduler:
    """Sets the sparsity levels of a sparsifier's groups once an epoch.

    Subclasses compute the levels in `get_sl`. Making a scheduler sets those of the first epoch.

    Args:
        sparsifier (BaseSparsifier): a prepared one.
        last_epoch (int): the epoch before the first; -1 at the beginning of training.
        verbose (bool): print each change.

    Example:
        >>> sparsifier = facula.ao.pruning.WeightNormSparsifier(0.8)
        >>> sparsifier.prepare(facula.nn.Sequential(facula.nn.Linear(8, 8)), None)
        >>> scheduler = facula.ao.pruning.LambdaSL(sparsifier, lambda epoch: 0.5**epoch)
        >>> sparsifier.step(); scheduler.step(); scheduler.get_last_sl()
        [0.4]
    """

    def __init__(self, sparsifier, last_epoch=-1, verbose=False):
        self.sparsifier = sparsifier
        self.base_sl = [group["sparsity_level"] for group in sparsifier.groups]
        self.last_epoch = last_epoch
        count_steps(sparsifier)
        self._step_count = 0
        self.verbose = verbose
        self._get_sl_called_within_step = False
        self.step()

    def __repr__(self):
        levels = f"    base_sl: {self.base_sl}\n"
        return f"{type(self).__name__} (\nSparsifier {self.sparsifier}\n{levels})"

    def state_dict(self):
        """All attributes but the sparsifier.

        Returns:
            dict
        """
        return {key: value for key, value in vars(self).items() if key != "sparsifier"}

    def load_state_dict(self, state_dict):
        """Take over what `state_dict` returned.

        Args:
            state_dict (dict)
        """
        vars(self).update(state_dict)

    def get_last_sl(self):
        """The levels that the last step set, one for each group.

        Returns:
            list of float
        """
        return self._last_sl

    def get_sl(self):
        """The levels of the epoch `last_epoch`, one for each group; for subclasses.

        Returns:
            list of float
        """
        self._warn_outside_step()
        raise NotImplementedError(f"{type(self).__name__}.get_sl(): expected from a subclass")

    def _warn_outside_step(self):
        if not self._get_sl_called_within_step:
            warnings.warn(
                "get_sl() is for step(): get_last_sl() tells the levels in force", stacklevel=3
            )

    def print_sl(self, is_verbose, group, sl, epoch=None):
        """Print a group's level.

        Args:
            is_verbose (bool): whether to print at all. group (int). sl (float).
            epoch (int): printed before, where it is given.
        """
        if not is_verbose:
            return
        if epoch is None:
            print(f"Adjusting sparsity level of group {group} to {sl:.4e}.")
        else:
            print(f"Epoch {epoch:5d}: adjusting sparsity level of group {group} to {sl:.4e}.")

    def step(self, epoch=None):
        """Go to the next epoch and set its levels.

        Args:
            epoch (int): for the printed text alone.
        """
        warn_of_order(self._step_count, self.sparsifier, "sparsifier")
        self._step_count += 1
        self.last_epoch += 1
        self._get_sl_called_within_step = True
        try:
            levels = self.get_sl()
        finally:
            self._get_sl_called_within_step = False
        for i, (group, level) in enumerate(zip(self.sparsifier.groups, levels, strict=False)):
            group["sparsity_level"] = level
            self.print_sl(self.verbose, i, level, epoch)
        self._last_sl = [group["sparsity_level"] for group in self.sparsifier.groups]

    def _make_sure_a_list(self, var):
        """One value for each group: a list of as many as there are, or one value for all."""
        groups = len(self.sparsifier.groups)
        values = list(var) if isinstance(var, (list, tuple)) else [var] * groups
        if len(values) != groups:
            raise ValueError(
                f"{type(self).__name__}(): expected {groups} values, one for each group; "
                f"got {len(values)}"
            )
        return values
