"""How exact arithmetic is to be. facula's is exact to the dtype whatever is asked for."""

from __future__ import annotations

import warnings

_LEVELS = ("highest", "high", "medium")
_state = {"level": "highest"}


def get_float32_matmul_precision():
    """What `set_float32_matmul_precision` was last told: "highest", "high" or "medium"."""
    return _state["level"]


def set_float32_matmul_precision(precision):
    """Say how exact products of float32 must be; less than all is never used here.

    Args:
        precision (str): "highest", "high" or "medium"; another draws a warning.

    Example:
        >>> facula.set_float32_matmul_precision("high")
        >>> facula.get_float32_matmul_precision()
        'high'
        >>> facula.set_float32_matmul_precision("highest")
    """
    if not isinstance(precision, str):
        raise TypeError(f"set_float32_matmul_precision(): expected a str; got {precision!r}")
    if precision not in _LEVELS:
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current "
            "setFloat32MatmulPrecision call has no effect.",
            stacklevel=2,
        )
        return
    _state["level"] = precision


def set_flush_denormal(mode):
    """Ask for the smallest numbers to become zero, which facula does not do: it keeps them.

    Args:
        mode (bool): whether denormal numbers may be taken for zero.

    Returns:
        bool: whether the processor does as asked: True for False alone.

    Raises:
        RuntimeError: `mode` is no bool.

    Example:
        >>> facula.set_flush_denormal(True)
        False
        >>> facula.set_flush_denormal(False)
        True
    """
    if not isinstance(mode, bool):
        raise RuntimeError(f"set_flush_denormal(): expected a bool; got {mode!r}")
    return not mode
