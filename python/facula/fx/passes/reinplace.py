"""Functional graphs made to write to values that nobody needs any more."""

from __future__ import annotations

import facula
from facula.fx.interpreter import Interpreter
from facula.fx.node import Node, map_aggregate
from facula.utils._pytree import tree_leaves

__all__ = ["reinplace"]


class _Storages(Interpreter):
    """Runs a graph and notes for each step the storages of its value, by number."""

    def __init__(self, module):
        # Values are kept: a storage that is freed would lend its address to another.
        super().__init__(module, garbage_collect_values=False)
        self.of, self.tensors = {}, {}

    def run_node(self, n):
        result = super().run_node(n)
        found = [t for t in tree_leaves(result) if isinstance(t, facula.Tensor)]
        # Two empty tensors share no memory, though both say 0.
        self.of[n] = {t.untyped_storage().data_ptr() for t in found} - {0}
        if isinstance(result, facula.Tensor):
            self.tensors[n] = result
        return result


def reinplace(gm, *sample_args):
    """Let steps write their results over arguments that nobody needs any more.

    A step becomes its operator's variant in place (`aten.add` becomes `aten.add_`) where its first
    argument has the result's sizes and dtype, is no argument of the graph, and no later step takes
    a value in the same memory. Steps that write a part of a tensor (`select_scatter` and its like)
    stay as they are.

    Args:
        gm (GraphModule): a graph of operators that write nothing, as `make_fx` gives it; is
            changed.
        *sample_args: its arguments; it is run on copies of them.

    Returns:
        GraphModule: the same.

    Example:
        >>> graph = facula.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> y = graph.call_function(facula.ops.aten.neg.default, (x,))
        >>> _ = graph.output(graph.call_function(facula.ops.aten.relu.default, (y,)))
        >>> gm = reinplace(facula.fx.GraphModule({}, graph), facula.ones(2))
        >>> [str(node.target) for node in gm.graph.nodes if node.op == "call_function"]
        ['aten.neg.default', 'aten.relu_.default']
    """
    known = _Storages(gm)
    with facula.no_grad():
        known.run(*map_aggregate(sample_args, _copied))
    nodes = list(gm.graph.nodes)
    given = set()
    for node in nodes:
        # Parameters and arguments belong to the caller.
        if node.op in ("placeholder", "get_attr"):
            given |= known.of.get(node, set())
    for place, node in enumerate(nodes):
        target = _in_place_variant(node, known)
        if target is None:
            continue
        own = node.args[0]
        if known.of[own] & given or _is_needed(own, nodes[place + 1 :], node, known):
            continue
        node.target = target
        # From here on the result is in the argument's memory, and so are its views.
        moved = known.of[node]
        for other, storages in known.of.items():
            if storages & moved:
                known.of[other] = (storages - moved) | known.of[own]
        node.replace_all_uses_with(own)
    gm.recompile()
    return gm


def _repeats(tensor):
    """Whether elements of a tensor share memory, as those of an expanded one do."""
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return any(size > 1 and stride == 0 for size, stride in pairs)


def _copied(value):
    return value.detach().clone() if isinstance(value, facula.Tensor) else value


def _in_place_variant(node, known):
    """The variant in place of a step's operator that would give the same value, or None."""
    if node.op != "call_function" or not isinstance(node.target, facula._C.OpOverload):
        return None
    own = node.args[0] if node.args else None
    if not isinstance(own, Node) or own not in known.tensors or node not in known.tensors:
        return None
    before, after = known.tensors[own], known.tensors[node]
    if before.shape != after.shape or before.dtype != after.dtype:
        return None
    if known.of[own] & known.of[node] or _repeats(before):
        return None
    space, _, name = node.target._schema.name.partition("::")
    packet = getattr(getattr(facula.ops, space), f"{name}_", None)
    overload = node.target._overloadname
    if packet is None or overload not in packet.overloads():
        return None
    found = getattr(packet, overload)
    functional, writing = node.target._schema, found._schema
    same = [(a.name, str(a.type)) for a in functional.arguments] == [
        (a.name, str(a.type)) for a in writing.arguments
    ]
    return found if same and writing.is_mutable else None


def _is_needed(own, later, node, known):
    """Whether a step behind `node` takes a value in the memory of `own`, or `node` does twice."""
    shared = known.of[own]
    if any(used is not own and known.of.get(used, set()) & shared for used in node.all_input_nodes):
        return True
    return any(known.of.get(used, set()) & shared for n in later for used in n.all_input_nodes)
