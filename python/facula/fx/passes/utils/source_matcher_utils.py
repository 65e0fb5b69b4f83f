"""Steps that came from the same module or function of the traced program."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from facula.fx.node import Node

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]


@dataclass
class SourcePartition:
    """Steps of one call of a module or function.

    Attributes:
        nodes (list[Node]): the steps.
        source: the class or function.
        input_nodes, output_nodes (list[Node]): where values come from, and what goes out.
        params (list[Node]): the parameters that are read.
    """

    nodes: list[Node]
    source: Any
    input_nodes: list[Node] = field(default_factory=list)
    output_nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)


def get_source_partitions(graph, wanted_sources, filter_fn=None):
    """The steps of calls of certain modules and functions, by `meta["source_fn_stack"]`.

    Args:
        graph (Graph): is searched.
        wanted_sources (list): classes of modules, functions, or names of them.
        filter_fn (callable): which steps count.

    Returns:
        dict[object, list[SourcePartition]]
    """
    calls = {}
    for node in graph.nodes:
        stack = node.meta.get("source_fn_stack") or _torch_fn(node)
        if not stack:
            continue
        name, source = stack[-1]
        key = source if source in wanted_sources else getattr(source, "__name__", None)
        if key in wanted_sources:
            calls.setdefault(key, {}).setdefault(name, []).append(node)
    found = {}
    for source, by_name in calls.items():
        partitions = [_partition(nodes, source) for nodes in by_name.values()]
        if filter_fn is not None:
            partitions = [p for p in partitions if all(map(filter_fn, p.nodes))]
        if partitions:
            found[source] = partitions
    return found


def _torch_fn(node):
    told = node.meta.get("torch_fn")
    return [(told[0], told[1])] if told else None


def _partition(nodes, source):
    inside = set(nodes)
    inputs, params, outputs = {}, {}, {}
    for node in nodes:
        for used in node.all_input_nodes:
            if used.op == "get_attr":
                params.setdefault(used)
            elif used not in inside:
                inputs.setdefault(used)
        if node.op == "get_attr":
            params.setdefault(node)
        if any(user not in inside for user in node.users):
            outputs.setdefault(node)
    return SourcePartition(nodes, source, list(inputs), list(outputs), list(params))


def check_subgraphs_connected(subgraph1, subgraph2):
    """Whether a step of the second takes a value of the first.

    Args:
        subgraph1, subgraph2 (SourcePartition): the parts.
    """
    given = set(subgraph1.nodes)
    return any(used in given for node in subgraph2.nodes for used in node.all_input_nodes)
