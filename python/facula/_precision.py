"""How exact products of float32 are to be. facula's are exact to float32 whatever is asked for."""

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
