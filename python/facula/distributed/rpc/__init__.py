"""Calls of functions in other processes: this build has none."""


def is_available():
    """Whether other processes can be called: False in this build."""
    return False
