"""Warnings that one process gives once."""

from __future__ import annotations

import warnings

_told = set()


def warn_once(text, stacklevel=3):
    """Warn with a UserWarning, unless the same text was given before.

    Args:
        text (str): the warning.
        stacklevel (int): 3 names the line that called the function that calls this one.

    Example:
        >>> warn_once("old(): is deprecated in favour of new")
    """
    if text in _told:
        return
    _told.add(text)
    warnings.warn(text, stacklevel=stacklevel)
