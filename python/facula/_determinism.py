"""Whether results must be the same every time. facula's are; programs set and ask it."""

from __future__ import annotations

_MODES = {"default": 0, "warn": 1, "error": 2}
_state = {"mode": 0}


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Ask for algorithms that give the same bits every time; facula has no others.

    Args:
        mode (bool): whether they are asked for.
        warn_only (bool): warn, rather than raise, where there is none.
    """
    if not isinstance(mode, (bool, int)) or not isinstance(warn_only, (bool, int)):
        raise TypeError(
            "use_deterministic_algorithms(): expected bools; got "
            f"{type(mode).__name__} and {type(warn_only).__name__}"
        )
    _state["mode"] = 0 if not mode else 1 if warn_only else 2


def are_deterministic_algorithms_enabled():
    """Whether `use_deterministic_algorithms` asked for them."""
    return _state["mode"] != 0


def is_deterministic_algorithms_warn_only_enabled():
    """Whether a warning is to be given where there is no such algorithm."""
    return _state["mode"] == 1


def set_deterministic_debug_mode(debug_mode):
    """`use_deterministic_algorithms` by a name or number.

    Args:
        debug_mode (str or int): "default" or 0, "warn" or 1, "error" or 2.

    Raises:
        TypeError, RuntimeError: another value.

    Example:
        >>> facula.set_deterministic_debug_mode("warn")
        >>> facula.get_deterministic_debug_mode()
        1
        >>> facula.set_deterministic_debug_mode(0)
    """
    if not isinstance(debug_mode, (str, int)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
                f"{debug_mode}"
            )
        debug_mode = _MODES[debug_mode]
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}"
        )
    _state["mode"] = int(debug_mode)


def get_deterministic_debug_mode():
    """0 for "default", 1 for "warn", 2 for "error"."""
    return _state["mode"]
