"""A schedule that waits for a metric to stop improving."""

from __future__ import annotations

import math

from facula.optim._schedule_base import EPOCH_DEPRECATION_WARNING, LRScheduler, _warn, set_in_group
from facula.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rate by `factor` when a metric has not improved for `patience` epochs.

    Args:
        optimizer: whose groups change.
        mode: "min" or "max", what improving means.
        factor: below 1.
        patience: epochs without improvement that are allowed.
        threshold, threshold_mode: how much is an improvement, "rel" or "abs".
        cooldown: epochs to wait after a reduction.
        min_lr: least rate, a number or one per group.
        eps: least change of the rate.

    Raises:
        ValueError: settings out of range.
        TypeError: not an Optimizer.
    """

    def __init__(
        self,
        optimizer,
        mode="min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode="rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau: factor must be below 1; got {factor}")
        if not isinstance(optimizer, Optimizer):
            raise TypeError(
                f"ReduceLROnPlateau: optimizer must be an Optimizer; got {type(optimizer).__name__}"
            )
        for name, given, known in (
            ("mode", mode, ("min", "max")),
            ("threshold_mode", threshold_mode, ("rel", "abs")),
        ):
            if given not in known:
                raise ValueError(f"ReduceLROnPlateau: {name} must be one of {known}; got {given!r}")
        self.optimizer, self.last_epoch = optimizer, 0
        self.mode, self.threshold_mode, self.threshold = mode, threshold_mode, threshold
        self.factor, self.patience, self.cooldown, self.eps = factor, patience, cooldown, eps
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self._last_lr = [group["lr"] for group in optimizer.param_groups]
        self._set_least(min_lr, len(self._last_lr))
        self._reset()

    def _set_least(self, min_lr, groups):
        one = not isinstance(min_lr, (list, tuple))
        self.default_min_lr = min_lr if one else None
        self.min_lrs = [min_lr] * groups if one else list(min_lr)
        if len(self.min_lrs) != groups:
            raise ValueError(
                f"ReduceLROnPlateau: min_lr must be a number or {groups} of them, "
                f"one for each parameter group; got {len(self.min_lrs)}"
            )

    def _reset(self):
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics, epoch=None) -> None:
        """Take the metric of an epoch and lower the rates when it is time."""
        current = float(metrics)
        if epoch is None:
            epoch = self.last_epoch + 1
        else:
            _warn(EPOCH_DEPRECATION_WARNING)
        self.last_epoch = epoch
        better, waiting = self.is_better(current, self.best), self.in_cooldown
        if better:
            self.best = current
        if waiting:
            self.cooldown_counter -= 1
        self.num_bad_epochs = 0 if better or waiting else self.num_bad_epochs + 1
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(epoch)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._current_lrs()

    def _reduce_lr(self, epoch):
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"ReduceLROnPlateau: min_lrs must have a value for each of the {len(groups)} "
                    f"parameter groups; got {len(self.min_lrs)}"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                set_in_group(group, "lr", new)

    @property
    def in_cooldown(self):
        """Whether a reduction was a short while ago."""
        return self.cooldown_counter > 0

    def is_better(self, a, best):
        """Whether metric `a` improves on `best`; returns a bool."""
        if self.threshold_mode == "rel":
            scale = 1.0 - self.threshold if self.mode == "min" else self.threshold + 1.0
            return a < best * scale if self.mode == "min" else a > best * scale
        return a < best - self.threshold if self.mode == "min" else a > best + self.threshold
