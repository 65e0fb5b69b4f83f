"""The base of schedulers, and schedulers made of others."""

from __future__ import annotations

from bisect import bisect_right

import facula
from facula.optim.optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "scheduler.step(): epoch is deprecated; with it the closed form is used where there is one"
)


def _warn(message, level=3):
    import warnings

    warnings.warn(message, stacklevel=level)


def _warn_get_lr_called_within_step(lr_scheduler):
    """Warn where a user calls get_lr(), which is the step's own."""
    lr_scheduler._warn_unless_stepping()


class _enable_get_lr_call:
    """Context in which a scheduler's get_lr() may be called."""

    def __init__(self, o) -> None:
        self.o = o

    def __enter__(self):
        self.o._get_lr_called_within_step = True
        return self

    def __exit__(self, *error):
        self.o._get_lr_called_within_step = False


def copied(value):
    """A value that later changes of a tensor learning rate do not reach."""
    return value.clone() if isinstance(value, facula.Tensor) else value


def set_in_group(group, key, value):
    """Set a setting of a group; a tensor is filled, so that graphs keep seeing it."""
    if isinstance(group[key], facula.Tensor):
        group[key].fill_(value)
    else:
        group[key] = value


def per_group(optimizer, name, value):
    """One value per group of the optimizer. Raises ValueError for a list of a wrong length."""
    n = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * n
    if len(value) != n:
        raise ValueError(
            f"{name} must have a value for each of the {n} parameter groups; got {len(value)}"
        )
    return list(value)


class LRScheduler:
    """Base of schedulers; subclasses define `get_lr`, one rate per group.

    Args:
        optimizer: whose groups change.
        last_epoch: number of the last step when training goes on, else -1.

    Raises:
        TypeError: not an Optimizer.
        KeyError: training goes on but a group has no "initial_lr".
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param group {i} has no 'initial_lr', which last_epoch >= 0 needs: "
                    "load the optimizer's state first, or start with last_epoch=-1"
                )
        self.base_lrs = [copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._track_step_calls()
        self._initial_step()

    def _track_step_calls(self):
        """Let the optimizer remember that `step` was called, to warn of a wrong order."""
        step = self.optimizer.step
        if hasattr(step, "_wrapped_by_lr_sched"):
            return
        from weakref import ref

        owner, function = ref(self.optimizer), step.__func__

        def wrapper(*args, **kwargs):
            optimizer = owner()
            optimizer._opt_called = True
            return function.__get__(optimizer, type(optimizer))(*args, **kwargs)

        wrapper._wrapped_by_lr_sched = True
        self.optimizer.step = wrapper

    def _initial_step(self):
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self):
        """Everything but the optimizer; returns a dict."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict):
        """Take back what `state_dict` gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self):
        """The rates that the last step set; returns a list."""
        return self._last_lr

    def get_lr(self):
        """Override: the next rate of each group; returns a list."""
        raise NotImplementedError

    def _current_lrs(self):
        return [copied(group["lr"]) for group in self.optimizer.param_groups]

    def _warn_unless_stepping(self):
        if not self._get_lr_called_within_step:
            _warn("the last learning rate is what get_last_lr() returns", 4)

    def step(self, epoch: int | None = None) -> None:
        """Set the rates of the next epoch (or step)."""
        if self._step_count == 1:
            self._warn_of_order()
        self._step_count += 1
        if epoch is not None:
            _warn(EPOCH_DEPRECATION_WARNING)
        self._update_lr(epoch)

    def _warn_of_order(self):
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            _warn(
                "optimizer.step() was replaced after the scheduler was made, so their order "
                "cannot be checked",
                4,
            )
        elif not getattr(self.optimizer, "_opt_called", False):
            _warn(
                "lr_scheduler.step() came before optimizer.step(): the first learning rate is "
                "skipped",
                4,
            )

    def _update_lr(self, epoch=None):
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", None)
                values = self.get_lr() if closed is None else closed()
        finally:
            self._get_lr_called_within_step = False
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            set_in_group(group, "lr", lr)
        self._last_lr = self._current_lrs()


class _LRScheduler(LRScheduler):
    """Old name of `LRScheduler`."""


def _check_parts(name, schedulers, optimizer):
    """Schedulers that act together must be of one optimizer and step without a metric."""
    if not schedulers:
        raise ValueError(f"{name}: schedulers must not be empty")
    for i, part in enumerate(schedulers):
        if not hasattr(part, "optimizer"):
            raise TypeError(f"{name}: scheduler {i} has no optimizer")
        if type(part).__name__ == "ReduceLROnPlateau":
            raise ValueError(
                f"{name}: step() of ReduceLROnPlateau needs a metric, so it cannot be "
                f"chained; got one at {i}"
            )
        if part.optimizer != optimizer:
            raise ValueError(
                f"{name}: all schedulers must have one optimizer; got another at {i}, "
                f"a {type(part).__name__}"
            )


class SequentialLR(LRScheduler):
    """Schedulers one after another.

    Args:
        optimizer: whose groups change.
        schedulers: list of schedulers of this optimizer.
        milestones: the steps at which the next one takes over.
        last_epoch: number of the last step.

    Raises:
        ValueError: no schedulers, another optimizer, or a wrong number of milestones.
    """

    def __init__(self, optimizer, schedulers, milestones: list[int], last_epoch: int = -1) -> None:
        _check_parts(type(self).__name__, schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "SequentialLR: milestones must be one fewer than schedulers; got "
                f"{len(milestones)} and {len(schedulers)}"
            )
        self.optimizer, self.last_epoch = optimizer, last_epoch + 1
        self._schedulers, self._milestones = schedulers, milestones
        # Making the schedulers has already stepped each: start over with the first one.
        for group in optimizer.param_groups:
            set_in_group(group, "lr", group["initial_lr"])
        for scheduler in schedulers:
            _step_back(scheduler)
        schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def recursive_undo(self, sched=None):
        """Take one step back in all schedulers of `sched`, or of this one."""
        _step_back(self if sched is None else sched)

    def step(self) -> None:
        """Set the rates of the next step."""
        self.last_epoch += 1
        which = bisect_right(self._milestones, self.last_epoch)
        current = self._schedulers[which]
        takes_over = which > 0 and self.last_epoch == self._milestones[which - 1]
        if takes_over:
            current._update_lr(0)
        else:
            current.step()
        self._last_lr = current.get_last_lr()

    def state_dict(self):
        """Everything but the optimizer, with the states of the schedulers; returns a dict."""
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict):
        """Take back what `state_dict` gave."""
        state = dict(state_dict)
        parts = state.pop("_schedulers")
        self.__dict__.update(state)
        for scheduler, part in zip(self._schedulers, parts, strict=True):
            scheduler.load_state_dict(part)


def _step_back(scheduler):
    scheduler.last_epoch -= 1
    if isinstance(scheduler, SequentialLR):
        for inner in scheduler._schedulers:
            _step_back(inner)


class ChainedScheduler(LRScheduler):
    """Schedulers that all act at every step.

    Args:
        schedulers: sequence of schedulers of one optimizer.
        optimizer: that optimizer; the first scheduler's when None.

    Raises:
        ValueError: no schedulers, or different optimizers.
    """

    def __init__(self, schedulers, optimizer=None) -> None:
        if optimizer is None and schedulers:
            optimizer = schedulers[0].optimizer
        _check_parts(type(self).__name__, schedulers, optimizer)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = self._current_lrs()

    def step(self) -> None:
        """Step every scheduler."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._current_lrs()

    state_dict = SequentialLR.state_dict
    load_state_dict = SequentialLR.load_state_dict
