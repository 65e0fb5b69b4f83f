"""Equal steps computed once (common subexpressions)."""

from __future__ import annotations

import facula
from facula.fx.graph import Graph
from facula.fx.graph_module import GraphModule
from facula.fx.node import Node
from facula.fx.passes.infra.pass_base import PassBase, PassResult

__all__ = ["CSEPass", "get_CSE_banned_ops"]


def get_CSE_banned_ops():  # noqa: N802
    """The operators that must be called each time: random ones, and those that write.

    Returns:
        set[OpOverloadPacket]

    Example:
        >>> facula.ops.aten.bernoulli in get_CSE_banned_ops()
        True
    """
    found = set()
    names = [fact["name"] for fact in facula._C._operator_table()]
    for name in (*names, *(f"{name}_" for name in names)):
        packet = getattr(facula.ops.aten, name, None)
        if packet is None:
            continue
        overloads = [getattr(packet, name) for name in packet.overloads()]
        draws = any(facula.Tag.nondeterministic_seeded in o.tags for o in overloads)
        if draws or (overloads and all(o._schema.is_mutable for o in overloads)):
            found.add(packet)
    return found


class CSEPass(PassBase):
    """Lets steps with the same target and arguments be one step.

    Args:
        banned_ops (set): operators, as packets, that are called each time all the same;
            `get_CSE_banned_ops()` has those that are random or write. None are if None.

    Example:
        >>> gm = facula.fx.symbolic_trace(lambda x: facula.cos(x) + facula.cos(x))
        >>> result = CSEPass()(gm)
        >>> result.modified, [node.name for node in result.graph_module.graph.nodes]
        (True, ['x', 'cos', 'add', 'output'])
    """

    def __init__(self, banned_ops=None):
        self.banned_ops = set() if banned_ops is None else banned_ops

    def call(self, graph_module):
        """A module with equal steps computed once.

        Args:
            graph_module (GraphModule): stays as it is.

        Returns:
            PassResult
        """
        made, values, known = Graph(), {}, {}
        made._codegen = graph_module.graph._codegen
        modified = False
        for node in graph_module.graph.nodes:
            key = self._key(node, values)
            if key is not None and key in known:
                values[node], modified = known[key], True
                continue
            values[node] = made.node_copy(node, lambda n: values[n])
            if key is not None:
                known[key] = values[node]
        return PassResult(GraphModule(graph_module, made), modified)

    def _key(self, node, values):
        """What equal steps have in common, or None for a step that stays by itself."""
        if node.op in ("placeholder", "output", "get_attr", "call_module"):
            return None
        if getattr(node.target, "overloadpacket", node.target) in self.banned_ops:
            return None
        parts = []

        def note(value):
            # 1 and 1.0 are equal, and give results of different dtypes.
            parts.append((type(value), values[value] if isinstance(value, Node) else value))

        _walk((node.args, node.kwargs), note)
        try:
            key = node.op, node.target, tuple(parts)
            hash(key)
        except TypeError:
            return None
        return key


def _walk(nest, note):
    if isinstance(nest, (list, tuple)):
        note(f"{type(nest).__name__} of {len(nest)}")
        for item in nest:
            _walk(item, note)
    elif isinstance(nest, dict):
        note(f"dict of {sorted(nest)}")
        for key in sorted(nest):
            _walk(nest[key], note)
    elif isinstance(nest, slice):
        note("slice")
        for part in (nest.start, nest.stop, nest.step):
            _walk(part, note)
    else:
        note(nest)
