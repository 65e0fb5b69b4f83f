"""Replacing parts of a graph by others."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import NamedTuple

import facula
from facula.fx._symbolic_trace import symbolic_trace
from facula.fx.graph import Graph
from facula.fx.graph_module import GraphModule, _assign_attr, _get_attr, _has_attr
from facula.fx.node import Node, map_arg
from facula.fx.passes.utils.matcher_utils import SubgraphMatcher

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """One occurrence that was replaced: the pattern's last step, and its nodes with the graph's."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """One occurrence that was replaced, with the steps that came in its place."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def replace_pattern(gm, pattern, replacement):
    """Put other steps in the place of a pattern's occurrences, and write `forward` anew.

    Args:
        gm (GraphModule): is changed.
        pattern (callable | Module): traced, what is searched: nodes with equal targets and
            arguments; its arguments stand for anything.
        replacement (callable | Module): traced, what is put in; takes the same arguments and gives
            the same results.

    Returns:
        list[Match]: the occurrences.

    Raises:
        AssertionError: pattern and replacement have different numbers of arguments.

    Example:
        >>> gm = facula.fx.symbolic_trace(lambda x: facula.relu(x + 1))
        >>> matches = facula.fx.replace_pattern(
        ...     gm, lambda a: facula.relu(a), lambda a: facula.sigmoid(a))
        >>> [node.name for node in gm.graph.nodes]
        ['x', 'add', 'sigmoid', 'output']
    """
    replaced = _replace_pattern(gm, pattern, replacement)
    return [Match(found.anchor, found.nodes_map) for found in replaced]


def replace_pattern_with_filters(
    gm,
    pattern,
    replacement=None,
    match_filters=None,
    ignore_literals=False,
    replacement_callback=None,
    node_name_match="",
):
    """`replace_pattern` with a choice among the occurrences.

    Args:
        gm (GraphModule): is changed.
        pattern (callable | Graph | GraphModule): what is searched.
        replacement (callable | Graph | GraphModule): what is put in.
        match_filters (list[callable]): of an InternalMatch, the graph and the pattern's graph,
            whether the occurrence is replaced.
        ignore_literals (bool): whether numbers and texts may differ.
        replacement_callback (callable): of the same, the Graph that is put in, where `replacement`
            is None.
        node_name_match (str): where a possible last step has this name, others are left out.

    Returns:
        list[ReplacedPatterns]
    """
    return _replace_pattern(
        gm,
        pattern,
        replacement,
        match_filters,
        ignore_literals,
        replacement_callback,
        node_name_match,
    )


def _graph_of(program):
    if isinstance(program, GraphModule):
        return program.graph
    return program if isinstance(program, Graph) else symbolic_trace(program).graph


def _replace_pattern(
    gm,
    pattern,
    replacement=None,
    match_filters=None,
    ignore_literals=False,
    replacement_callback=None,
    node_name_match="",
):
    pattern_graph = _graph_of(pattern)
    matcher = SubgraphMatcher(pattern_graph, ignore_literals=ignore_literals)
    matches = [
        match
        for match in matcher.match(gm.graph, node_name_match)
        if all(keep(match, gm.graph, pattern_graph) for keep in match_filters or ())
    ]
    if replacement is None and replacement_callback is None:
        raise AssertionError(
            "replace_pattern_with_filters(): replacement or replacement_callback must be given"
        )
    common = None if replacement is None else _graph_of(replacement)
    renamed, replaced = {}, []
    for match in matches:
        graph = common
        if graph is None:
            graph = replacement_callback(match, gm.graph, pattern_graph)
        replaced.append(_replace_one(gm, pattern_graph, graph, match, renamed))
    gm.recompile()
    if isinstance(replacement, facula.nn.Module):
        _take_attributes(gm, replacement)
    return replaced


def _replace_one(gm, pattern, graph, match, renamed):
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    if len(placeholders) != len(match.placeholder_nodes):
        raise AssertionError(
            f"replace_pattern(): replacement must have {len(match.placeholder_nodes)} arguments, "
            f"as the pattern has; got {len(placeholders)}"
        )
    # An earlier replacement may have taken the place of an argument.
    for mine, theirs in match.nodes_map.items():
        if isinstance(theirs, Node) and theirs in renamed:
            match.nodes_map[mine] = renamed[theirs]
    arguments = [renamed.get(n, n) if isinstance(n, Node) else n for n in match.placeholder_nodes]
    values = dict(zip(placeholders, arguments, strict=True))
    with gm.graph.inserting_before(_insert_point(match, arguments)):
        results = gm.graph.graph_copy(graph, values)
    results = results if isinstance(results, (list, tuple)) else (results,)
    for old, new in zip(match.returning_nodes, _nodes_in(results), strict=True):
        old.replace_all_uses_with(new)
        renamed[old] = new
    for node in reversed(pattern.nodes):
        if node.op not in ("placeholder", "output"):
            gm.graph.erase_node(match.nodes_map[node])
    made = [values[n] for n in graph.nodes if n.op not in ("placeholder", "output")]
    return ReplacedPatterns(match.anchors[0], match.nodes_map, made)


def _nodes_in(results):
    found = []
    map_arg(tuple(results), found.append)
    return found


def _insert_point(match, arguments):
    """The first user of a result; behind the arguments where one of them comes later."""
    inside = set(match.nodes_map.values())
    users = [u for n in match.returning_nodes for u in n.users if u not in inside]
    placeholders = {n for n in match.placeholder_nodes if isinstance(n, Node)}
    users = [u for u in users if u not in placeholders]
    if not users or placeholders & set(match.returning_nodes):
        raise AssertionError("replace_pattern(): the pattern's results must have users")
    point = min(users)
    late = [n.next for n in arguments if isinstance(n, Node) and not n < point]
    return max([point, *late])


def _take_attributes(gm, replacement):
    """Give a module what the steps of the replacement name."""
    gm.delete_all_unused_submodules()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr") or _has_attr(gm, node.target):
            continue
        if not _has_attr(replacement, node.target):
            raise RuntimeError(
                f"replace_pattern(): {node} needs {node.target}; neither module has it"
            )
        _assign_attr(copy.deepcopy(_get_attr(replacement, node.target)), gm, node.target)
    gm.graph.lint()
