"""Scaling of losses, so that small gradients of half types do not become zero.

Source: Micikevicius et al., "Mixed Precision Training" (2018), with a scale that follows what the
gradients bear.
"""

from __future__ import annotations

import enum
import math
import warnings
from collections import defaultdict

import facula

__all__ = ["OptState", "GradScaler"]


class OptState(enum.Enum):
    """What was done with an optimizer since the last update."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state():
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Scales losses up before backward, and gradients down before a step.

    A step with gradients that are infinite or no numbers is left out, and the scale goes down;
    after `growth_interval` good steps it goes up.

    Args:
        device (str): where the losses are.
        init_scale (float): the first scale.
        growth_factor (float): what the scale is multiplied by after good steps; above 1.
        backoff_factor (float): what it is multiplied by after a bad one; below 1.
        growth_interval (int): how many good steps in a row it takes to grow.
        enabled (bool): False makes it do nothing.

    Example:
        >>> scaler = facula.amp.GradScaler("cpu", init_scale=4.0)
        >>> w = facula.nn.Parameter(facula.ones(1))
        >>> optimizer = facula.optim.SGD([w], lr=0.5)
        >>> scaler.scale(w.sum()).backward()
        >>> w.grad
        tensor([4.])
        >>> scaler.step(optimizer)
        >>> scaler.update()
        >>> w.data
        tensor([0.5000])
    """

    def __init__(
        self,
        device="cuda",
        init_scale=2.0**16,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self._device = device
        self._enabled = enabled
        if self._device == "cuda" and enabled and not facula.cuda.is_available():
            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.",
                stacklevel=2,
            )
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        # A tensor from the first call of scale() on.
        self._scale = self._growth_tracker = None
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval, self._init_growth_tracker = growth_interval, 0
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    # --- a loss

    def _lazy_init_scale_growth_tracker(self, dev):
        if self._growth_tracker is not None:
            raise AssertionError("_growth_tracker initialized before _scale")
        self._scale = facula.full((), self._init_scale, dtype=facula.float32, device=dev)
        self._growth_tracker = facula.full(
            (), self._init_growth_tracker, dtype=facula.int32, device=dev
        )

    def scale(self, outputs):
        """A tensor, or tensors in lists and tuples, times the scale.

        Raises:
            ValueError: something that is neither.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, facula.Tensor):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker(outputs.device)
            return outputs * self._scale.to(outputs.device)
        if not hasattr(outputs, "__iter__") or isinstance(outputs, str):
            raise ValueError("outputs must be a Tensor or an iterable of Tensors")
        scaled = [self.scale(output) for output in outputs]
        return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else iter(scaled)

    # --- gradients

    def _check_scale_growth_tracker(self, funcname):
        if self._scale is None:
            raise AssertionError(
                f"Attempted {funcname} but _scale is None.  This may indicate your script did not "
                "use scaler.scale(loss or outputs) earlier in the iteration."
            )
        return self._scale, self._growth_tracker

    def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16):
        """Multiply gradients by a factor; returns found_inf (1 for a bad gradient) by device."""
        by_device = {}
        with facula.no_grad():
            for group in optimizer.param_groups:
                for param in group["params"]:
                    if param.grad is None:
                        continue
                    if not allow_fp16 and param.grad.dtype == facula.float16:
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    device = param.grad.device
                    found = by_device.setdefault(device, found_inf.to(device, copy=True))
                    values = param.grad._values() if param.grad.is_sparse else param.grad
                    if not facula.isfinite(values).all():
                        found.fill_(1.0)
                    values.mul_(inv_scale.to(device=device))
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = by_device
        return by_device

    def _inverse_and_no_inf(self):
        scale = self._scale
        return (
            scale.double().reciprocal().float(),
            facula.full((), 0.0, dtype=facula.float32, device=scale.device),
        )

    def unscale_(self, optimizer):
        """Divide the gradients of an optimizer's parameters by the scale; `step` then does not.

        Raises:
            RuntimeError: it was done, or a step was taken, since the last update.
            ValueError: a gradient is of float16.
        """
        if not self._enabled:
            return
        self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse, found = self._inverse_and_no_inf()
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, found, False)
        state["stage"] = OptState.UNSCALED

    def _maybe_opt_step(self, optimizer, optimizer_state, *args, **kwargs):
        if any(found.item() for found in optimizer_state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def step(self, optimizer, *args, **kwargs):
        """Unscale the gradients, and take a step unless one of them is bad.

        Args:
            optimizer (Optimizer): further arguments are for its `step`.

        Returns:
            what the optimizer's `step` gives; None where it is left out.

        Raises:
            RuntimeError: a closure; a second step since the last update.
            AssertionError: no parameter has a gradient.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._step_that_unscales(optimizer, state, args, kwargs)
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _step_that_unscales(self, optimizer, state, args, kwargs):
        """A step of an optimizer that takes scale and found_inf itself (as attributes)."""
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        scaled = state["stage"] is OptState.READY
        found = sum(f.to(self._scale.device) for f in state["found_inf_per_device"].values())
        optimizer.grad_scale = self._scale.clone() if scaled else None
        optimizer.found_inf = found
        try:
            result = optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf
        state["stage"] = OptState.STEPPED
        return result

    # --- the scale

    def update(self, new_scale=None):
        """Let the scale follow the steps since the last update, or set it.

        Args:
            new_scale (float or Tensor): the next scale.

        Raises:
            AssertionError: no step was taken since the last update.
        """
        if not self._enabled:
            return
        scale, tracker = self._check_scale_growth_tracker("update")
        if new_scale is not None:
            self._set_scale(new_scale)
        else:
            found = [
                found.item()
                for state in self._per_optimizer_states.values()
                for found in state["found_inf_per_device"].values()
            ]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            self._follow(scale, tracker, any(found))
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _set_scale(self, new_scale):
        if isinstance(new_scale, float):
            self._scale.fill_(new_scale)
            return
        fits = (
            isinstance(new_scale, facula.Tensor)
            and new_scale.numel() == 1
            and not new_scale.requires_grad
        )
        if not fits:
            raise AssertionError(
                "new_scale should be a float or a 1-element torch.cuda.FloatTensor or "
                "torch.FloatTensor with requires_grad=False."
            )
        self._scale.copy_(new_scale.reshape(()))

    def _follow(self, scale, tracker, bad):
        if bad:
            scale.mul_(self._backoff_factor)
            tracker.zero_()
            return
        steps = int(tracker.item()) + 1
        if steps < self._growth_interval:
            tracker.fill_(steps)
            return
        # A scale that would be infinite stays as it is.
        grown = scale * self._growth_factor
        if math.isfinite(grown.item()):
            scale.copy_(grown)
        tracker.zero_()

    def _get_scale_async(self):
        return self._scale

    def get_scale(self):
        """The scale (float); 1.0 where scaling is off."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self):
        """What the scale is multiplied by when it grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        """Set what the scale is multiplied by when it grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        """What the scale is multiplied by after a bad step."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        """Set what the scale is multiplied by after a bad step."""
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        """How many good steps it takes to grow."""
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        """Set how many good steps it takes to grow."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self):
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else tracker.item()

    def is_enabled(self):
        """Whether scaling is on."""
        return self._enabled

    # --- files

    def state_dict(self):
        """Scale, factors and interval; empty where scaling is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict):
        """Take over what `state_dict` gave.

        Raises:
            RuntimeError: it is empty, and scaling is on.
        """
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self):
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, "
                    "or at the end after scaler.update()."
                )
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)

    def _check_inf_per_device(self, optimizer):
        """Look for bad gradients without changing any; returns found_inf by device."""
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        one = facula.full((), 1.0, dtype=facula.float32, device=scale.device)
        return self._unscale_grads_(optimizer, one, one * 0, True)

    def _found_inf_per_device(self, optimizer):
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
