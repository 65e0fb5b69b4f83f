"""Automatic mixed precision."""

from __future__ import annotations

import functools

import facula
from facula import _C


class autocast:
    """Context manager and decorator: operators run in the precision that suits them.

    Args:
        device_type (str): "cpu".
        dtype (facula.dtype): the lower precision; bfloat16 unless set otherwise.
        enabled (bool): whether autocasting is on within.
        cache_enabled (bool): whether casts of weights are kept within.

    Raises:
        NotImplementedError: a device other than the CPU.
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(
                f"autocast: device_type must be a str; got {type(device_type).__name__}"
            )
        if device_type != "cpu":
            raise NotImplementedError(f"autocast(): device type {device_type!r} is not supported")
        self.device = device_type
        self.fast_dtype = _C._get_autocast_dtype() if dtype is None else dtype
        if enabled and self.fast_dtype not in (facula.bfloat16, facula.float16):
            import warnings

            warnings.warn(
                "autocast is off: on the CPU dtype must be bfloat16 or float16", stacklevel=2
            )
            enabled = False
        self._enabled = enabled
        self._cache = _C.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled

    def __enter__(self):
        self._before = _C._set_autocast(self._enabled, self.fast_dtype, self._cache)
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
    return device_type == "cpu"


def is_autocast_enabled(device_type="cpu"):
    """Whether autocasting is on for a device type (str)."""
    return device_type == "cpu" and _C._is_autocast_enabled()


def set_autocast_enabled(device_type, enabled=None):
    """Switch autocasting on or off."""
    on = device_type if enabled is None else enabled
    _C._set_autocast(on, _C._get_autocast_dtype(), _C.is_autocast_cache_enabled())


def get_autocast_dtype(device_type="cpu"):
    """The lower precision of autocasting."""
    return _C._get_autocast_dtype()


def set_autocast_dtype(device_type, dtype):
    """Set the lower precision of autocasting."""
    _C._set_autocast(_C._is_autocast_enabled(), dtype, _C.is_autocast_cache_enabled())
