"""A module cut into several by the tags of its steps."""

from __future__ import annotations

import copy
import operator
from dataclasses import dataclass, field
from typing import Any

from facula.fx.graph import Graph
from facula.fx.graph_module import GraphModule
from facula.fx.node import map_arg
from facula.fx.passes.utils.common import HolderModule, lift_subgraph_as_module

__all__ = [
    "Component",
    "getattr_recursive",
    "move_non_tensor_nodes_on_boundary",
    "setattr_recursive",
    "split_by_tags",
]


def getattr_recursive(obj, name):
    """What an object has at a dotted name; None where it has nothing."""
    for part in name.split("."):
        if not hasattr(obj, part):
            return None
        obj = getattr(obj, part)
    return obj


def setattr_recursive(obj, attr, value):
    """Put a value at a dotted name of an object."""
    *way, last = attr.split(".")
    for part in way:
        obj = getattr(obj, part)
    setattr(obj, last, value)


@dataclass
class Component:
    """One of the modules that a module is cut into.

    Attributes:
        graph (Graph): its steps.
        order (int): when it is called.
        name (str): its tag.
        input_placeholders (list[Node]): its arguments, and `orig_inputs` what they are outside.
        orig_outputs (list[Node]): the steps whose values it gives.
        getattr_maps (dict[Node, Node]): its readings of parameters.
        gm (GraphModule): the module.
    """

    graph: Graph
    order: int
    name: str
    input_placeholders: list = field(default_factory=list)
    orig_inputs: list = field(default_factory=list)
    orig_outputs: list = field(default_factory=list)
    getattr_maps: dict = field(default_factory=dict)
    constructor_args: list = field(default_factory=list)
    gm: Any = None


def split_by_tags(
    gm, tags, return_fqn_mapping=False, return_tuple=False, GraphModuleCls=GraphModule
):
    """Cut a module into one for each tag, and one that calls them.

    Args:
        gm (GraphModule): its steps that call something have an attribute `tag`.
        tags (list[str]): the tags in the order in which the parts are called.
        return_fqn_mapping (bool): whether the names of modules in `gm` and in the parts are given.
        return_tuple (bool): whether parts with one result give a tuple, too.
        GraphModuleCls (type): the class of the new modules.

    Returns:
        GraphModule | tuple[GraphModule, dict[str, str]]

    Raises:
        AssertionError: a part takes a value of a later one, or a step has no tag of these.
    """
    parts = {tag: Component(Graph(), i, tag) for i, tag in enumerate(tags)}
    home, values = {}, {}
    outputs = [node for node in gm.graph.nodes if node.op == "output"]
    for node in gm.graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        tag = getattr(node, "tag", None)
        if tag not in parts:
            raise AssertionError(f"split_by_tags(): {node} must have a tag of {tags}; got {tag!r}")
        home[node] = parts[tag]
        _take(node, parts[tag], home, values)
    for node in outputs:
        for used in node.all_input_nodes:
            if used in home:
                _give(used, home[used])
    main, names = _base_graph(gm, parts.values(), values, return_tuple)
    root = HolderModule({part.name: part.gm for part in parts.values()})
    for node in main.nodes:
        if node.op == "get_attr":
            setattr(root, node.target, getattr_recursive(gm, node.target))
    made = GraphModuleCls(root, main)
    return (made, names) if return_fqn_mapping else made


def _give(node, part):
    if node not in part.orig_outputs:
        part.orig_outputs.append(node)


def _take(node, part, home, values):
    """Copy a step into its part."""

    def value_of(used):
        if used.op == "get_attr":
            if used not in part.getattr_maps:
                part.getattr_maps[used] = part.graph.get_attr(used.target, used.type)
            return part.getattr_maps[used]
        owner = home.get(used)
        if owner is part:
            return values[used]
        if owner is not None:
            if owner.order > part.order:
                raise AssertionError(
                    f"split_by_tags(): {part.name} needs {used}, of the later {owner.name}"
                )
            _give(used, owner)
        if used not in part.orig_inputs:
            part.orig_inputs.append(used)
            made = part.graph.placeholder(used.name, type_expr=used.type)
            made.meta = copy.copy(used.meta)
            part.input_placeholders.append(made)
        return part.input_placeholders[part.orig_inputs.index(used)]

    values[node] = part.graph.node_copy(node, value_of)


def _base_graph(gm, parts, values, return_tuple):
    graph, environment, names = Graph(), {}, {}

    def value_of(node):
        if node not in environment:  # a parameter that is returned
            environment[node] = graph.get_attr(node.target, node.type)
        return environment[node]

    for node in gm.graph.nodes:
        if node.op == "placeholder":
            environment[node] = graph.node_copy(node)
    for part in parts:
        results = tuple(values[node] for node in part.orig_outputs)
        is_single = len(results) == 1 and not return_tuple
        part.graph.output(results[0] if is_single else results)
        part.gm, mapping = lift_subgraph_as_module(gm, part.graph, part.name)
        names.update({theirs: mine for mine, theirs in mapping.items()})
        call = graph.call_module(part.name, tuple(map(value_of, part.orig_inputs)))
        if is_single:
            environment[part.orig_outputs[0]] = call
            continue
        for i, node in enumerate(part.orig_outputs):
            environment[node] = graph.call_function(operator.getitem, (call, i))
    for node in gm.graph.nodes:
        if node.op == "output":
            graph.output(map_arg(node.args[0], value_of))
    return graph, names


def move_non_tensor_nodes_on_boundary(subgraphs):
    """Move steps that give no tensors over to the parts that take their values.

    Args:
        subgraphs (list): have `nodes` and `is_acc`; are changed.
    """
    from facula.fx.passes.tools_common import CALLABLE_NODE_OPS, is_node_output_tensor

    home = {node: i for i, part in enumerate(subgraphs) for node in part.nodes}
    for i, part in enumerate(subgraphs):
        for node in reversed(list(part.nodes)):
            if node.op not in CALLABLE_NODE_OPS or is_node_output_tensor(node):
                continue
            places = {home.get(user) for user in node.users}
            if len(places) == 1 and (place := places.pop()) is not None and place > i:
                part.nodes.remove(node)
                subgraphs[place].nodes.insert(0, node)
                home[node] = place
