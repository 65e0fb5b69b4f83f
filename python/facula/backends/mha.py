"""Whether transformer layers may take a shorter way in evaluation mode."""

_state = {"enabled": True}


def get_fastpath_enabled():
    """Whether they may.

    Example:
        >>> facula.backends.mha.get_fastpath_enabled()
        True
    """
    return _state["enabled"]


def set_fastpath_enabled(value):
    """Say whether they may (bool); the results are the same."""
    _state["enabled"] = bool(value)
