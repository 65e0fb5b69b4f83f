"""Optimizer: the base of all optimizers."""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict

import facula
from facula.utils.hooks import RemovableHandle

_global_optimizer_pre_hooks = OrderedDict()
_global_optimizer_post_hooks = OrderedDict()


class _RequiredParameter:
    """A setting that every param group must give."""

    def __repr__(self):
        return "<required parameter>"


required = _RequiredParameter()


def _add(table, hook, prepend=False):
    handle = RemovableHandle(table)
    table[handle.id] = hook
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook):
    """Call hook(optimizer, args, kwargs) before the step of every optimizer; returns a handle."""
    return _add(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook):
    """Call hook(optimizer, args, kwargs) after the step of every optimizer; returns a handle."""
    return _add(_global_optimizer_post_hooks, hook)


def _hooked(step):
    """`step` with the hooks around it."""

    def wrapper(*args, **kwargs):
        self = args[0]
        if not (
            self._optimizer_step_pre_hooks
            or self._optimizer_step_post_hooks
            or _global_optimizer_pre_hooks
            or _global_optimizer_post_hooks
        ):
            return step(*args, **kwargs)
        for hook in (
            *_global_optimizer_pre_hooks.values(),
            *self._optimizer_step_pre_hooks.values(),
        ):
            changed = hook(self, args, kwargs)
            if changed is None:
                continue
            if not isinstance(changed, tuple) or len(changed) != 2:
                raise RuntimeError(
                    f"{step}: a pre-hook must return None or (args, kwargs); got {changed}"
                )
            args, kwargs = changed
        result = step(*args, **kwargs)
        for hook in (
            *self._optimizer_step_post_hooks.values(),
            *_global_optimizer_post_hooks.values(),
        ):
            hook(self, args, kwargs)
        return result

    functools.update_wrapper(wrapper, step)
    wrapper.hooked = True
    return wrapper


class Optimizer:
    """Base class of optimizers: groups of parameters with settings, and state per parameter.

    Args:
        params: iterable of Tensors, of (name, Tensor), or of dicts with "params" and settings.
        defaults: dict of the settings that a group does not give.

    Raises:
        TypeError: a single Tensor, or entries that are no Tensors.
        ValueError: no parameters, or a parameter that is no leaf or occurs twice.
    """

    _step_supports_amp_scaling = False

    def __init__(self, params, defaults) -> None:
        if isinstance(params, facula.Tensor):
            raise TypeError(
                "Optimizer: params must be an iterable of Tensors or dicts; got "
                f"{facula.typename(params)}"
            )
        if isinstance(params, set):
            import warnings

            warnings.warn(
                "Optimizer: parameters must come in an order that stays the same; got a set, "
                "which will be an error",
                FutureWarning,
                stacklevel=3,
            )
        self.defaults = defaults
        self._init_hooks()
        self._patch_step_function()
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _init_hooks(self):
        for name in (
            "_optimizer_step_pre_hooks",
            "_optimizer_step_post_hooks",
            "_optimizer_state_dict_pre_hooks",
            "_optimizer_state_dict_post_hooks",
            "_optimizer_load_state_dict_pre_hooks",
            "_optimizer_load_state_dict_post_hooks",
        ):
            self.__dict__.setdefault(name, OrderedDict())

    # The decorator of `step` under its public name.
    profile_hook_step = staticmethod(_hooked)

    # Optimizers written elsewhere call these before a step. A facula device has no graph of work
    # that a step could spoil.
    def _cuda_graph_capture_health_check(self):
        pass

    _accelerator_graph_capture_health_check = _cuda_graph_capture_health_check

    def _patch_step_function(self):
        cls = type(self)
        if not getattr(cls.step, "hooked", False):
            cls.step = _hooked(cls.step)

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._init_hooks()
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self):
        lines = [type(self).__name__ + " ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join(lines) + "\n)"

    # ---- hooks

    def register_step_pre_hook(self, hook):
        """Call hook(optimizer, args, kwargs) before `step`; returns a handle."""
        return _add(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook):
        """Call hook(optimizer, args, kwargs) after `step`; returns a handle."""
        return _add(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """Call hook(optimizer) before `state_dict`; returns a handle."""
        return _add(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """Call hook(optimizer, state_dict) after `state_dict`; it may return another one."""
        return _add(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """Call hook(optimizer, state_dict) before loading; it may return another one."""
        return _add(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """Call hook(optimizer) after loading; returns a handle."""
        return _add(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # ---- state

    def state_dict(self):
        """State and groups, where numbers stand for the parameters.

        Returns:
            {"state": {number: state}, "param_groups": [settings with "params": [numbers]]}
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers = {}
        groups = []
        for group in self.param_groups:
            for param in group["params"]:
                numbers.setdefault(id(param), len(numbers))
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = [numbers[id(param)] for param in group["params"]]
            groups.append(packed)
        state = {
            (numbers[id(k)] if isinstance(k, facula.Tensor) else k): v
            for k, v in self.state.items()
        }
        result = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, result)
            result = result if changed is None else changed
        return result

    def load_state_dict(self, state_dict):
        """Take state and settings from `state_dict`.

        Raises:
            ValueError: other groups, or groups of other sizes.
        """
        from copy import deepcopy

        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        groups, saved = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError(
                f"load_state_dict(): expected {len(groups)} parameter groups; got {len(saved)}"
            )
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(groups, saved, strict=True)):
            raise ValueError(
                "load_state_dict(): a parameter group of state_dict has another "
                "number of parameters"
            )
        params = {
            number: param
            for group, old in zip(groups, saved, strict=True)
            for number, param in zip(old["params"], group["params"], strict=True)
        }
        fused = {id(p) for group in groups for p in group["params"] if group.get("fused")}
        state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                param = params[key]
                state[param] = _cast(param, value, None, id(param) in fused)
            else:
                state[key] = value
        for group, old in zip(groups, saved, strict=True):
            old["params"] = group["params"]
            if "param_names" in group and "param_names" not in old:
                old["param_names"] = group["param_names"]
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def zero_grad(self, set_to_none=True):
        """Drop the gradients of all parameters, or zero them when `set_to_none` is False."""
        for group in self.param_groups:
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                if set_to_none:
                    param.grad = None
                    continue
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    def step(self, closure=None) -> float | None:
        """Override: change the parameters once; `closure` computes the loss again."""
        raise NotImplementedError

    # ---- groups

    def add_param_group(self, param_group):
        """Add a group.

        Args:
            param_group: dict with "params" (Tensor or iterable) and settings.

        Raises:
            TypeError, ValueError: parameters that cannot be optimized, or are in a group already.
        """
        if not isinstance(param_group, dict):
            raise TypeError(
                f"add_param_group(): param_group must be a dict; got {type(param_group).__name__}"
            )
        params = param_group["params"]
        if isinstance(params, facula.Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "Optimizer: parameters must come in an order that stays the same; got a set"
            )
        param_group["params"] = list(params)
        _take_names(param_group)
        for param in param_group["params"]:
            _check_param(param, self.defaults)
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    f"Optimizer: a parameter group must have a value for {name}, "
                    "which has no default"
                )
            param_group.setdefault(name, default)
        params = param_group["params"]
        if len(params) != len({id(p) for p in params}):
            import warnings

            warnings.warn(
                "Optimizer: a parameter group holds a parameter more than once", stacklevel=3
            )
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if any(id(p) in known for p in params):
            raise ValueError(
                "Optimizer: a parameter must be in one parameter group; got one in several"
            )
        if self.param_groups and ("param_names" in param_group) != (
            "param_names" in self.param_groups[0]
        ):
            one, two = ("with", "without") if "param_names" in param_group else ("without", "with")
            raise ValueError(
                "Optimizer: parameter groups must all have names or all have none; "
                f"got one {one} for an optimizer {two}"
            )
        self.param_groups.append(param_group)

    # ---- helpers of the optimizers

    @staticmethod
    def _evaluate(closure):
        """The loss that `closure` computes, with gradients enabled; None without one."""
        if closure is None:
            return None
        with facula.enable_grad():
            return closure()


def _take_names(group):
    """Split (name, Tensor) entries of a group into "params" and "param_names"."""
    entries = group["params"]
    named = [isinstance(entry, tuple) for entry in entries]
    if not any(named):
        return
    if not all(named):
        raise ValueError("Optimizer: parameters must all have names or all have none")
    group["params"] = [param for _, param in entries]
    group["param_names"] = [name for name, _ in entries]


def _check_param(param, defaults):
    if not isinstance(param, facula.Tensor):
        raise TypeError(f"Optimizer: can only optimize Tensors; got {facula.typename(param)}")
    if not defaults.get("differentiable", None) and not (param.is_leaf or param.retains_grad):
        raise ValueError("can't optimize a non-leaf Tensor: a parameter must be a leaf")


def _cast(param, value, key, fused):
    """Loaded state on the parameter's device and, except for step counts, of its dtype."""
    if isinstance(value, facula.Tensor):
        if key == "step":
            return value.to(dtype=facula.float32, device=param.device) if fused else value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)
    if isinstance(value, dict):
        return {k: _cast(param, v, k, fused) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(param, v, None, fused) for v in value)
    return value


def _value(x):
    """A Python number of a number or a 0-dim tensor."""
    return x.item() if isinstance(x, facula.Tensor) else x


def _step_dtype():
    return facula.float64 if facula.get_default_dtype() == facula.float64 else facula.float32


def _new_step():
    """A step count: a 0-dim tensor on the CPU, as checkpoints hold it."""
    return facula.tensor(0.0, dtype=_step_dtype())


def _check_lr(lr, foreach, capturable=False):
    if isinstance(lr, facula.Tensor):
        if foreach and not capturable:
            raise ValueError("a Tensor as lr with foreach=True needs capturable=True")
        if lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
    if not lr >= 0.0:
        raise ValueError(f"Invalid learning rate: {lr}")


def _check_nonnegative(**values):
    """Raise ValueError for the first negative value; names are the words of the message."""
    for name, value in values.items():
        if not value >= 0.0:
            raise ValueError(f"Invalid {name} value: {value}")


def _check_betas(betas):
    for i in range(2):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"betas must be in [0, 1); got {betas[i]} at {i}")


def _check_fused(fused, differentiable, foreach):
    if not fused:
        return
    if differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if foreach:
        raise RuntimeError("fused and foreach exclude each other; got both")


def _check_flags(group, params):
    """Raise AssertionError for flags that exclude each other or do not suit the device."""
    if group.get("foreach") and group.get("differentiable"):
        raise AssertionError("foreach and differentiable exclude each other; got both")
    if not group.get("capturable"):
        return
    for p in params:
        if p.device.type == "cpu":
            raise AssertionError(
                f"capturable=True: parameters must be on an accelerator; got one on {p.device}"
            )


def __getattr__(name):
    # What optimizers written elsewhere import from here.
    from facula.optim import _helpers

    if name.startswith("__") or not hasattr(_helpers, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_helpers, name)


class grad_mode:
    """Gradients enabled inside `step` only for differentiable optimizers."""

    def __init__(self, differentiable):
        self.context = facula.set_grad_enabled(differentiable and facula.is_grad_enabled())

    def __enter__(self):
        self.context.__enter__()

    def __exit__(self, *error):
        self.context.__exit__(*error)
