"""Switching the recording of operations on and off."""
from __future__ import annotations

from facula import _C


class _Switch:
    """Base of the context managers that are decorators as well."""

    def __call__(self, function):
        """Wrap `function` (also a generator function or a class) to run with this switch."""
        from facula.autograd._decorate import decorated
        return decorated(self, function)

    def clone(self):
        """A fresh switch of the same setting, for one use."""
        return type(self)()


class _NoParameter(_Switch):
    # @no_grad and @no_grad() both decorate.
    def __new__(cls, function=None):
        self = object.__new__(cls)
        return self if function is None else self(function)


class no_grad(_NoParameter):
    """Context manager and decorator: operations are not recorded for backward.

    Example:
        >>> weight = facula.ones(2, requires_grad=True)
        >>> with facula.no_grad():
        ...     weight += 1
        >>> weight.requires_grad
        True
    """

    def __enter__(self):
        self.prev = _C.is_grad_enabled()
        _C._set_grad_enabled(False)

    def __exit__(self, *exception):
        _C._set_grad_enabled(self.prev)


class enable_grad(_NoParameter):
    """Context manager and decorator: operations are recorded for backward."""

    def __enter__(self):
        self.prev = _C.is_grad_enabled()
        _C._set_grad_enabled(True)

    def __exit__(self, *exception):
        _C._set_grad_enabled(self.prev)


class set_grad_enabled(_Switch):
    """Function, context manager and decorator: sets whether operations are recorded.

    Args:
        mode (bool): whether to record.
    """

    def __init__(self, mode):
        self.prev = _C.is_grad_enabled()
        self.mode = mode
        _C._set_grad_enabled(mode)

    def __call__(self, function):
        _C._set_grad_enabled(self.prev)
        return super().__call__(function)

    def __enter__(self):
        _C._set_grad_enabled(self.mode)

    def __exit__(self, *exception):
        _C._set_grad_enabled(self.prev)

    def __str__(self):
        return f"{type(self).__name__}(mode={self.mode})"

    __repr__ = __str__

    def clone(self):
        return type(self)(self.mode)


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
