"""Schedules that go up and down, also with the momentum."""

from __future__ import annotations

import math
from weakref import WeakMethod

from facula.optim._schedule_base import LRScheduler, copied, per_group, set_in_group


def _set_betas_or_momentum(group, use_beta1, momentum):
    if use_beta1:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


class CyclicLR(LRScheduler):
    """Triangles between `base_lr` and `max_lr`.

    Args:
        optimizer: whose groups change.
        base_lr, max_lr: bounds, numbers or one per group.
        step_size_up, step_size_down: lengths of the two sides; equal when the second is None.
        mode: "triangular", "triangular2" (halved every cycle) or "exp_range" (gamma ** step).
        scale_fn, scale_mode: a scale of one's own of the "cycle" or "iterations".
        cycle_momentum, base_momentum, max_momentum: move the momentum the other way.
        last_epoch: number of the last step.
    """

    def __init__(
        self,
        optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode="triangular",
        gamma: float = 1.0,
        scale_fn=None,
        scale_mode="cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if not hasattr(optimizer, "param_groups"):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        bases = per_group(optimizer, "base_lr", base_lr)
        if last_epoch == -1:
            for lr, group in zip(bases, optimizer.param_groups, strict=True):
                set_in_group(group, "lr", lr)
        self.max_lrs = per_group(optimizer, "max_lr", max_lr)
        step_size_up = float(step_size_up)
        step_size_down = step_size_up if step_size_down is None else float(step_size_down)
        self.total_size = step_size_up + step_size_down
        self.step_ratio = step_size_up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(f"CyclicLR: mode must be known, or scale_fn given; got {mode!r}")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(base_momentum, max_momentum)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = bases

    def _start_momentum(self, base_momentum, max_momentum):
        optimizer = self.optimizer
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError(
                "CyclicLR: cycle_momentum=True needs an optimizer with momentum or betas"
            )
        self.use_beta1 = "betas" in optimizer.defaults
        self.base_momentums = per_group(optimizer, "base_momentum", base_momentum)
        self.max_momentums = per_group(optimizer, "max_momentum", max_momentum)
        for high, low, group in zip(
            self.max_momentums, self.base_momentums, optimizer.param_groups, strict=True
        ):
            _set_betas_or_momentum(group, self.use_beta1, high)
            group["max_momentum"] = high
            group["base_momentum"] = low

    def scale_fn(self, x):
        """The scale of the triangle at cycle (or step) `x`; returns a number."""
        if self._scale_fn_custom is not None:
            custom = self._scale_fn_custom
            return custom()(x) if isinstance(custom, WeakMethod) else custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / 2.0 ** (x - 1) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self):
        """The next rates; also sets the momentum."""
        self._warn_unless_stepping()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for low, high, group in zip(
                self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=True
            ):
                _set_betas_or_momentum(group, self.use_beta1, high - (high - low) * height)
        return [
            low + (high - low) * height
            for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]

    def state_dict(self):
        """Everything but the optimizer and a scale function of one's own; returns a dict."""
        state = super().state_dict()
        custom = state["_scale_fn_custom"]
        state["_scale_fn_custom"] = None
        # A function cannot be saved; of a callable object its attributes are.
        if custom is not None and hasattr(custom, "__dict__") and not hasattr(custom, "__get__"):
            state["_scale_fn_custom"] = custom.__dict__.copy()
        return state

    def load_state_dict(self, state_dict):
        """Take back what `state_dict` gave."""
        state = dict(state_dict)
        attributes = state.pop("_scale_fn_custom", None)
        super().load_state_dict(state)
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)


def _cosine(start, end, done):
    return end + (start - end) / 2.0 * (math.cos(math.pi * done) + 1)


def _linear(start, end, done):
    return (end - start) * done + start


class OneCycleLR(LRScheduler):
    """One rise to `max_lr` and one fall far below the start, in `total_steps` steps.

    Args:
        optimizer: whose groups change.
        max_lr: the top, a number or one per group.
        total_steps: length; or `epochs` times `steps_per_epoch`.
        pct_start: part of the steps that rises.
        anneal_strategy: "cos" or "linear".
        cycle_momentum, base_momentum, max_momentum: move the momentum the other way.
        div_factor: top over start. final_div_factor: start over end.
        three_phase: fall back to the start first, then to the end.
        last_epoch: number of the last step.

    Raises:
        ValueError: no length, or settings out of range.
    """

    def __init__(
        self,
        optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy="cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if not hasattr(optimizer, "param_groups"):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"OneCycleLR: pct_start must be in [0, 1]; got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"OneCycleLR: anneal_strategy must be 'cos' or 'linear'; got {anneal_strategy!r}"
            )
        self._anneal_func_type = anneal_strategy
        self._schedule_phases = self._phases(pct_start, three_phase)
        tops = per_group(optimizer, "max_lr", max_lr)
        if last_epoch == -1:
            for group, top in zip(optimizer.param_groups, tops, strict=True):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _phases(self, pct_start, three_phase):
        up = float(pct_start * self.total_steps) - 1
        names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
        rise = (up, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        if not three_phase:
            rows = [
                rise,
                (self.total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"),
            ]
        else:
            rows = [
                rise,
                (
                    float(2 * pct_start * self.total_steps) - 2,
                    "max_lr",
                    "initial_lr",
                    "base_momentum",
                    "max_momentum",
                ),
                (self.total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
            ]
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _start_momentum(self, base_momentum, max_momentum, last_epoch):
        optimizer = self.optimizer
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError(
                "OneCycleLR: cycle_momentum=True needs an optimizer with momentum or betas"
            )
        self.use_beta1 = "betas" in optimizer.defaults
        highs = per_group(optimizer, "max_momentum", max_momentum)
        lows = per_group(optimizer, "base_momentum", base_momentum)
        if last_epoch != -1:
            return
        for high, low, group in zip(highs, lows, optimizer.param_groups, strict=True):
            _set_betas_or_momentum(group, self.use_beta1, high)
            group["max_momentum"] = high
            group["base_momentum"] = low

    def _anneal_func(self, start, end, done):
        return (_cosine if self._anneal_func_type == "cos" else _linear)(start, end, done)

    def get_lr(self):
        """The next rates; also sets the momentum. Raises ValueError past the last step."""
        self._warn_unless_stepping()
        n = self.last_epoch
        if n > self.total_steps:
            raise ValueError(f"OneCycleLR: there are {self.total_steps} steps; got step {n}")
        start = 0.0
        for phase in self._schedule_phases:
            if n <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            start = phase["end_step"]
        done = (n - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._anneal_func(group[phase["start_lr"]], group[phase["end_lr"]], done))
            if self.cycle_momentum:
                momentum = self._anneal_func(
                    group[phase["start_momentum"]], group[phase["end_momentum"]], done
                )
                _set_betas_or_momentum(group, self.use_beta1, momentum)
        return [copied(rate) for rate in rates]


def _total_steps(total_steps, epochs, steps_per_epoch):
    if total_steps is not None:
        if total_steps <= 0 or not isinstance(total_steps, int):
            raise ValueError(
                f"OneCycleLR: total_steps must be a positive integer; got {total_steps!r}"
            )
        return total_steps
    if epochs is None or steps_per_epoch is None:
        raise ValueError("OneCycleLR: total_steps, or epochs and steps_per_epoch, must be given")
    for name, value in (("epochs", epochs), ("steps_per_epoch", steps_per_epoch)):
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return epochs * steps_per_epoch
