"""What all schedulers of data sparsifiers share."""

from __future__ import annotations

from facula.ao.pruning._experimental.data_sparsifier import BaseDataSparsifier
from facula.ao.pruning.scheduler._step_counter import count_steps, warn_of_order

__all__ = ["BaseDataScheduler"]


class BaseDataScheduler:
    """Sets one option of all the data of a sparsifier once an epoch.

    Subclasses compute the values in `get_schedule_param`.

    Args:
        data_sparsifier (BaseDataSparsifier). schedule_param (str): the option's name.
        last_epoch (int): the epoch before the first; -1 at the beginning of training.
        verbose (bool): print each change.

    Raises:
        TypeError: `data_sparsifier` is of another class.

    Example:
        >>> from facula.ao.pruning._experimental.data_scheduler import BaseDataScheduler
        >>> from facula.ao.pruning._experimental.data_sparsifier import DataNormSparsifier
        >>> class Halving(BaseDataScheduler):
        ...     def get_schedule_param(self):
        ...         return {n: v * 0.5**self.last_epoch for n, v in self.base_param.items()}
        >>> sparsifier = DataNormSparsifier([("table", facula.ones(4, 8))])
        >>> scheduler = Halving(sparsifier, "sparsity_level")
        >>> sparsifier.step(); scheduler.step(); scheduler.get_last_param()
        {'table': 0.25}
    """

    def __init__(self, data_sparsifier, schedule_param, last_epoch=-1, verbose=False):
        if not isinstance(data_sparsifier, BaseDataSparsifier):
            raise TypeError(
                f"{type(self).__name__}(): expected a BaseDataSparsifier; "
                f"got {type(data_sparsifier).__name__}"
            )
        self.data_sparsifier = data_sparsifier
        self.schedule_param = schedule_param
        groups = data_sparsifier.data_groups
        self.base_param = {name: group.get(schedule_param) for name, group in groups.items()}
        self.last_epoch = last_epoch
        count_steps(data_sparsifier)
        self._step_count = 0
        self.verbose = verbose
        self._get_sp_called_within_step = False
        self.step()

    def get_schedule_param(self):
        """The option's values in the epoch `last_epoch`, by the names of the data.

        Returns:
            dict
        """
        raise NotImplementedError(
            f"{type(self).__name__}.get_schedule_param(): expected from a subclass"
        )

    def __repr__(self):
        values = f"    {self.schedule_param}: {self.base_param}\n"
        return f"{type(self).__name__} (\nData Sparsifier {self.data_sparsifier}\n{values})"

    def state_dict(self):
        """All attributes but the sparsifier.

        Returns:
            dict
        """
        return {key: value for key, value in vars(self).items() if key != "data_sparsifier"}

    def load_state_dict(self, state_dict):
        """Take over what `state_dict` returned.

        Args:
            state_dict (dict)
        """
        vars(self).update(state_dict)

    def get_last_param(self):
        """The values that the last step set, by the names of the data.

        Returns:
            dict
        """
        return self._last_param

    def step(self):
        """Go to the next epoch and set its values."""
        warn_of_order(self._step_count, self.data_sparsifier, "data_sparsifier")
        self._step_count += 1
        self.last_epoch += 1
        self._get_sp_called_within_step = True
        try:
            values = self.get_schedule_param()
        finally:
            self._get_sp_called_within_step = False
        groups = self.data_sparsifier.data_groups
        for name, group in groups.items():
            group[self.schedule_param] = values[name]
            if self.verbose:
                print(f"Adjusting {self.schedule_param} for group {name} to {values[name]}")
        self._last_param = {name: group[self.schedule_param] for name, group in groups.items()}
