"""Products with the same right side as one product."""

from __future__ import annotations

import itertools
import operator

import facula
from facula.fx._symbolic_trace import symbolic_trace
from facula.fx.node import Node
from facula.fx.passes.tools_common import legalize_graph

__all__ = ["are_nodes_independent", "may_depend_on", "merge_matmul", "split_result_tensors"]


def split_result_tensors(result, inputs):
    """The rows of a product, one part for each left side that it was made of.

    Args:
        result (Tensor): (rows, columns).
        inputs (list[Tensor]): the left sides, whose rows add up.

    Returns:
        tuple[Tensor, ...]
    """
    return facula.split(result, [x.shape[0] for x in inputs])


def may_depend_on(a, b, search_depth=6):
    """Whether a step may take values that come from another.

    Args:
        a, b (Node): the step, and the other.
        search_depth (int): how far is looked; True beyond it.
    """
    if a is b:
        return True
    if not a.all_input_nodes:
        return False
    if search_depth == 0:
        return True
    return any(may_depend_on(used, b, search_depth - 1) for used in a.all_input_nodes)


def are_nodes_independent(nodes):
    """Whether no step takes values that come from another of them.

    Args:
        nodes (list[Node]): the steps.
    """
    pairs = itertools.permutations(nodes, 2)
    return not any(may_depend_on(a, b) for a, b in pairs)


def merge_matmul(in_mod):
    """Compute products with the same right side as one: (a @ c, b @ c) from cat(a, b) @ c.

    Args:
        in_mod (Module): is traced; it stays as it is.

    Returns:
        GraphModule

    Example:
        >>> merged = merge_matmul(lambda a, b, c: (facula.matmul(a, c), facula.matmul(b, c)))
        >>> sum(node.target is facula.matmul for node in merged.graph.nodes)
        1
    """
    gm = symbolic_trace(in_mod)
    by_right = {}
    for node in gm.graph.nodes:
        if node.op == "call_function" and node.target is facula.matmul and len(node.args) == 2:
            by_right.setdefault(node.args[1], []).append(node)
    for right, products in by_right.items():
        if not isinstance(right, Node) or len(products) < 2:
            continue
        if are_nodes_independent(products):
            _merge(gm, right, products)
    legalize_graph(gm)
    gm.recompile()
    return gm


def _merge(gm, right, products):
    lefts = [node.args[0] for node in products]
    graph, place = gm.graph, products[-1]
    for target, args in (
        (facula.cat, lambda last: (lefts,)),
        (facula.matmul, lambda last: (last, right)),
        (split_result_tensors, lambda last: (last, lefts)),
    ):
        with graph.inserting_after(place):
            place = graph.call_function(target, args(place))
    parts = place
    for i, node in enumerate(products):
        with graph.inserting_after(place):
            place = graph.call_function(operator.getitem, (parts, i))
        node.replace_all_uses_with(place)
        graph.erase_node(node)
