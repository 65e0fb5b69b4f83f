"""Automatic mixed precision."""

from __future__ import annotations

import functools

import facula
from facula import _C

# What operators can be cast to.
_PRECISIONS = (facula.bfloat16, facula.float16)


class autocast:
    """Context manager and decorator: operators run in the precision that suits them.

    Args:
        device_type (str): "cpu" or an accelerator's type; each has a state of its own.
        dtype (facula.dtype): the lower precision; that of `get_autocast_dtype` if None.
        enabled (bool): whether autocasting is on within.
        cache_enabled (bool): whether casts of weights are kept within.

    Raises:
        RuntimeError: a type that is unknown, or that has no autocasting.
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if not is_autocast_available(device_type):
            raise RuntimeError(
                f"User specified an unsupported autocast device_type {device_type!r}"
            )
        self.device = device_type
        self.fast_dtype = _C._get_autocast_dtype(device_type) if dtype is None else dtype
        self._enabled = enabled and self._is_possible()
        self._cache = _C.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled

    def _is_possible(self):
        """Whether it can be switched on; a warning says why not."""
        import warnings

        if self.device != "cpu" and not _C._device_count(self.device):
            text = f"{self.device} is not available: autocast is off"
        elif self.fast_dtype not in _PRECISIONS:
            text = f"autocast is off: on {self.device} dtype must be bfloat16 or float16"
        else:
            return True
        warnings.warn(text, stacklevel=3)
        return False

    def __enter__(self):
        self._before = _C._set_autocast(self.device, self._enabled, self.fast_dtype, self._cache)
        return self

    def __exit__(self, *exception):
        _C._set_autocast(*self._before)
        return False

    def __call__(self, function):
        @functools.wraps(function)
        def run(*args, **kwargs):
            with autocast(self.device, self.fast_dtype, self._enabled, self._cache):
                return function(*args, **kwargs)

        return run


def is_autocast_available(device_type):
    """Whether autocasting exists for a device type (str)."""
    return facula.device(device_type).type != "meta"


def is_autocast_enabled(device_type="cuda"):
    """Whether autocasting is on for a device type (str)."""
    return _C._is_autocast_enabled(device_type)


def set_autocast_enabled(device_type, enabled=None):
    """Switch autocasting on or off for a device type (str); for "cuda" with one argument."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    dtype = _C._get_autocast_dtype(device_type)
    _C._set_autocast(device_type, enabled, dtype, _C.is_autocast_cache_enabled())


def get_autocast_dtype(device_type):
    """The lower precision of a device type (str)."""
    return _C._get_autocast_dtype(device_type)


def set_autocast_dtype(device_type, dtype):
    """Set the lower precision of a device type (str)."""
    enabled = _C._is_autocast_enabled(device_type)
    _C._set_autocast(device_type, enabled, dtype, _C.is_autocast_cache_enabled())
