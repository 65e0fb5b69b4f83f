"""Schedules that are a formula of the step."""

from __future__ import annotations

import math
import types
from collections import Counter

from facula.optim._schedule_base import LRScheduler, set_in_group


def _checked(name, value, fits, wanted):
    """`value`; raises ValueError unless it fits."""
    if not fits:
        raise ValueError(f"{name} must be {wanted}; got {value!r}")
    return value


class _FunctionLR(LRScheduler):
    """A schedule by one function, or one per group."""

    def __init__(self, optimizer, lr_lambda, last_epoch: int = -1) -> None:
        n = len(optimizer.param_groups)
        if isinstance(lr_lambda, (list, tuple)):
            if len(lr_lambda) != n:
                raise ValueError(f"Expected {n} lr_lambdas, but got {len(lr_lambda)}")
            self.lr_lambdas = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * n
        self.optimizer = optimizer
        super().__init__(optimizer, last_epoch)

    def state_dict(self):
        """Everything but optimizer and functions; of a callable object its attributes."""
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "lr_lambdas")}
        state["lr_lambdas"] = [
            None if isinstance(fn, types.FunctionType) else fn.__dict__.copy()
            for fn in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict):
        """Take back what `state_dict` gave."""
        state = dict(state_dict)
        saved = state.pop("lr_lambdas")
        self.__dict__.update(state)
        for fn, attributes in zip(self.lr_lambdas, saved, strict=False):
            if attributes is not None:
                fn.__dict__.update(attributes)


class LambdaLR(_FunctionLR):
    """The first rate times lr_lambda(epoch)."""

    def get_lr(self):
        """The next rates."""
        self._warn_unless_stepping()
        return [
            base * fn(self.last_epoch)
            for fn, base in zip(self.lr_lambdas, self.base_lrs, strict=True)
        ]


class MultiplicativeLR(_FunctionLR):
    """The last rate times lr_lambda(epoch)."""

    def get_lr(self):
        """The next rates."""
        self._warn_unless_stepping()
        if self._is_initial:
            return self._current_lrs()
        return [
            lr * fn(self.last_epoch)
            for fn, lr in zip(self.lr_lambdas, self._current_lrs(), strict=True)
        ]


class StepLR(LRScheduler):
    """Multiplies the rate by `gamma` every `step_size` epochs."""

    def __init__(self, optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """The next rates."""
        self._warn_unless_stepping()
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._current_lrs()
        return [lr * self.gamma for lr in self._current_lrs()]

    def _get_closed_form_lr(self):
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiplies the rate by `gamma` at each of the epochs `milestones`."""

    def __init__(self, optimizer, milestones, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """The next rates."""
        self._warn_unless_stepping()
        if self.last_epoch not in self.milestones:
            return self._current_lrs()
        factor = self.gamma ** self.milestones[self.last_epoch]
        return [lr * factor for lr in self._current_lrs()]

    def _get_closed_form_lr(self):
        passed = sum(n for epoch, n in self.milestones.items() if epoch <= self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """Multiplies the rate by `factor` for the first `total_iters` epochs."""

    def __init__(
        self, optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        self.factor = _checked(
            "ConstantLR: factor", factor, not (factor < 0 or factor > 1), "in [0, 1]"
        )
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """The next rates."""
        self._warn_unless_stepping()
        current = self._current_lrs()
        if self.last_epoch == 0:
            return [lr * self.factor for lr in current]
        if self.last_epoch != self.total_iters:
            return current
        return [lr * (1.0 / self.factor) for lr in current]

    def _get_closed_form_lr(self):
        factor = self.factor if self.last_epoch < self.total_iters else 1
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """A factor that goes from `start_factor` to `end_factor` in `total_iters` epochs."""

    def __init__(
        self,
        optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters = total_iters
        self.start_factor = _checked(
            "LinearLR: start_factor",
            start_factor,
            not (start_factor <= 0 or start_factor > 1),
            "in (0, 1]",
        )
        self.end_factor = _checked(
            "LinearLR: end_factor", end_factor, not (end_factor < 0 or end_factor > 1), "in [0, 1]"
        )
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """The next rates."""
        self._warn_unless_stepping()
        current = self._current_lrs()
        if self.last_epoch == 0:
            return [lr * self.start_factor for lr in current]
        if self._is_initial or self.last_epoch > self.total_iters:
            return current
        slope = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * slope
        return [lr * (1.0 + slope / before) for lr in current]

    def _get_closed_form_lr(self):
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        factor = self.start_factor + (self.end_factor - self.start_factor) * done
        return [base * factor for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Multiplies the rate by `gamma` every epoch."""

    def __init__(self, optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """The next rates."""
        self._warn_unless_stepping()
        if self._is_initial:
            return self._current_lrs()
        return [lr * self.gamma for lr in self._current_lrs()]

    def _get_closed_form_lr(self):
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """The first rate times (1 - epoch / total_iters) ** power."""

    def __init__(
        self, optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """The next rates."""
        self._warn_unless_stepping()
        n, total = self.last_epoch, self.total_iters
        if self._is_initial or n > total:
            return self._current_lrs()
        factor = ((1.0 - n / total) / (1.0 - (n - 1) / total)) ** self.power
        return [lr * factor for lr in self._current_lrs()]

    def _get_closed_form_lr(self):
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the first rate down to `eta_min` in `T_max` epochs."""

    def __init__(self, optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """The next rates, by recursion from the current ones."""
        self._warn_unless_stepping()
        current, n = self._current_lrs(), self.last_epoch
        if self._is_initial:
            return current
        if self._step_count == 1 and n > 0:
            wave = (1 + math.cos(n * math.pi / self.T_max)) / 2
            return [self.eta_min + (base - self.eta_min) * wave for base in self.base_lrs]
        if (n - 1 - self.T_max) % (2 * self.T_max) == 0:
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [
                lr + (base - self.eta_min) * rise
                for base, lr in zip(self.base_lrs, current, strict=True)
            ]
        ratio = (1 + math.cos(math.pi * n / self.T_max)) / (
            1 + math.cos(math.pi * (n - 1) / self.T_max)
        )
        return [ratio * (lr - self.eta_min) + self.eta_min for lr in current]

    def _get_closed_form_lr(self):
        wave = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * wave for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half cosines that start again, each `T_mult` times as long as the one before.

    Raises:
        ValueError: `T_0` or `T_mult` not a positive integer.
    """

    def __init__(
        self, optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        name = "CosineAnnealingWarmRestarts: "
        self.T_0 = self.T_i = _checked(
            name + "T_0", T_0, T_0 > 0 and isinstance(T_0, int), "a positive integer"
        )
        self.T_mult = _checked(
            name + "T_mult", T_mult, T_mult > 0 and isinstance(T_mult, int), "a positive integer"
        )
        self.eta_min = _checked(
            name + "eta_min", eta_min, isinstance(eta_min, (float, int)), "a number"
        )
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """The next rates."""
        self._warn_unless_stepping()
        wave = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * wave for base in self.base_lrs]

    def step(self, epoch=None) -> None:
        """Set the rates of the next epoch; a fraction of an epoch is allowed."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"step(): epoch must not be negative; got {epoch}")
        else:
            self._jump(epoch)
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            values = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            set_in_group(group, "lr", lr)
        self._last_lr = self._current_lrs()

    def _jump(self, epoch):
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            before = self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_cur = epoch - before
            self.T_i = self.T_0 * self.T_mult**n
