"""Switching the recording of operations on and off."""

from __future__ import annotations

from facula import _C, _capture
from facula._utils import CallSignature

__all__ = [
    "no_grad",
    "enable_grad",
    "set_grad_enabled",
    "inference_mode",
    "set_multithreading_enabled",
    "enforce_grad_layout_policy",
]


class _Switch:
    """Base of the context managers that are decorators as well."""

    def __call__(self, function):
        """Wrap `function` (also a generator function or a class) to run with this switch."""
        from facula.autograd._decorate import decorated

        return decorated(self, function)

    def clone(self):
        """A fresh switch of the same setting, for one use."""
        return type(self)()


class _Setting(_Switch):
    """Base of the switches that are functions as well: they are set when they are made.

    `_get()` and `_set(mode)` read and change the setting of the thread.
    """

    def __init__(self, mode):
        self.prev = self._get()
        self.mode = mode
        self._set(mode)

    def __call__(self, function):
        self._set(self.prev)
        return super().__call__(function)

    def __enter__(self):
        self._set(self.mode)

    def __exit__(self, *exception):
        self._set(self.prev)

    def clone(self):
        return type(self)(self.mode)


class no_grad(_Switch, _C._GradOff):
    """Context manager and decorator: operations are not recorded for backward.

    Example:
        >>> weight = facula.ones(2, requires_grad=True)
        >>> with facula.no_grad():
        ...     weight += 1
        >>> weight.requires_grad
        True
    """

    __signature__ = CallSignature("", of_instances=False)


class enable_grad(_Switch, _C._GradOn):
    """Context manager and decorator: operations are recorded for backward."""

    __signature__ = CallSignature("", of_instances=False)


class set_grad_enabled(_Setting):
    """Function, context manager and decorator: sets whether operations are recorded.

    Args:
        mode (bool): whether to record.
    """

    _get, _set = staticmethod(_C.is_grad_enabled), staticmethod(_C._set_grad_enabled)

    def __str__(self):
        return f"{__name__}.{type(self).__name__}(mode={self.mode})"

    __repr__ = __str__


class inference_mode(_Switch):
    """Context manager and decorator: new tensors take no part in autograd ever.

    Args:
        mode (bool): whether inference mode is on, or the function to decorate.
    """

    def __new__(cls, mode=True):
        self = object.__new__(cls)
        if isinstance(mode, bool):
            self.mode = mode
            return self
        self.mode = True
        return self(mode)

    def __enter__(self):
        self._before = _C._enter_inference_mode(self.mode)

    def __exit__(self, *exception):
        _C._leave_inference_mode(self._before)

    def clone(self):
        return type(self)(self.mode)


class set_multithreading_enabled(_Setting):
    """Function, context manager and decorator: backward may use a thread for each device.

    Args:
        mode (bool): whether it may; otherwise all runs on the thread that asks.
    """

    _get = staticmethod(_C._is_multithreading_enabled)
    _set = staticmethod(_C._set_multithreading_enabled)


class enforce_grad_layout_policy(_Setting):
    """Function, context manager and decorator: new `.grad`s get the layout of their leaf.

    Args:
        enable (bool): whether they do (the default of a thread). Otherwise a gradient that is dense
            and belongs to nobody else becomes `.grad` as it is, without a copy.

    Example:
        >>> p = facula.empty(3, 2).t().requires_grad_()
        >>> with facula.autograd.enforce_grad_layout_policy(False):
        ...     p.backward(facula.ones(2, 3))
    """

    _get = staticmethod(_C._is_grad_layout_enforcement_enabled)
    _set = staticmethod(_C._set_grad_layout_enforcement_enabled)

    def __init__(self, enable=True):
        super().__init__(enable)


class _unsafe_preserve_version_counter:
    """Context manager: in-place changes of `tensors` are not counted.

    Args:
        tensors (Tensor or tuple of Tensors): what is changed; backward may then be wrong.
    """

    def __init__(self, tensors):
        _capture.finish("versions are kept")
        self.tensors = (tensors,) if isinstance(tensors, _C.Tensor) else tuple(tensors)
        self.prev_versions = tuple(t._version for t in self.tensors)

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        _capture.finish("versions are kept")
        for tensor, version in zip(self.tensors, self.prev_versions, strict=True):
            _C._set_version(tensor, version)
