"""Types of values in traced programs."""

from __future__ import annotations

from facula.fx.proxy import Proxy

__all__ = ["annotate"]


def annotate(val, type):
    """Give a value a type in generated code, if it is being traced; returns the value.

    Args:
        val: the value.
        type: its type.

    Raises:
        RuntimeError: it has a type.

    Example:
        >>> gm = facula.fx.symbolic_trace(lambda x: annotate(x + 1, facula.Tensor))
        >>> "add : facula.Tensor = x + 1" in gm.code
        True
    """
    if not isinstance(val, Proxy):
        return val
    if val.node.type:
        raise RuntimeError(
            f"annotate(): the value must have no type yet; {val.node} has {val.node.type}"
        )
    val.node.type = type
    return val
