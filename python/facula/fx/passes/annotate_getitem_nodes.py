"""Types of items of typed tuples and lists."""

from __future__ import annotations

import operator
import typing

__all__ = ["annotate_getitem_nodes"]


def annotate_getitem_nodes(graph):
    """Give items the types that the types of their tuples and lists say.

    Args:
        graph (Graph): its nodes' `type` is set.
    """
    for node in graph.nodes:
        if node.op != "call_function" or node.target is not operator.getitem:
            continue
        source, index = node.args
        kind = source.type
        if kind is None:
            continue
        parts, origin = typing.get_args(kind), typing.get_origin(kind)
        if origin is tuple and parts:
            is_uniform = len(parts) == 2 and parts[1] is ...
            node.type = parts[0] if is_uniform else parts[index]
        elif origin is list and parts:
            node.type = parts[0]
        elif hasattr(kind, "_fields") and hasattr(kind, "__annotations__"):
            node.type = kind.__annotations__[kind._fields[index]]
