"""The mark by which functions of fx say whether they stay as they are between versions."""

from __future__ import annotations

__all__ = ["compatibility"]


def compatibility(is_backward_compatible=False):
    """A decorator that notes whether a function or class is kept as it is.

    Args:
        is_backward_compatible (bool): what is noted, as `_backward_compatible`.

    Returns:
        callable: it returns its argument.

    Example:
        >>> @compatibility(is_backward_compatible=True)
        ... def f():
        ...     pass
    """

    def mark(item):
        item._backward_compatible = is_backward_compatible
        return item

    return mark
