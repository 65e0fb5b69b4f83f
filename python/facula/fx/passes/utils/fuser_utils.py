"""Putting steps of a graph into modules of their own."""

from __future__ import annotations

import operator

from facula.fx.graph import Graph
from facula.fx.passes.tools_common import stable_topological_sort
from facula.fx.passes.utils.common import lift_subgraph_as_module

__all__ = [
    "erase_nodes",
    "fuse_as_graphmodule",
    "fuse_by_partitions",
    "insert_subgm",
    "topo_sort",
    "validate_partition",
]


def topo_sort(nodes):
    """Steps in an order in which each comes after those of them that it takes values of.

    Args:
        nodes (list[Node]): the steps.

    Raises:
        AssertionError: they depend on one another in a circle.
    """
    inside = dict.fromkeys(nodes)
    waiting = {n: sum(used in inside for used in n.all_input_nodes) for n in nodes}
    ready, ordered = [n for n in nodes if not waiting[n]], []
    while ready:
        node = ready.pop(0)
        ordered.append(node)
        for user in node.users:
            if user in inside:
                waiting[user] -= 1
                if not waiting[user]:
                    ready.append(user)
    if len(ordered) < len(nodes):
        raise AssertionError("topo_sort(): nodes must have no cycles")
    return ordered


def validate_partition(partition):
    """Whether steps can become one: no path leads out of them and back.

    Args:
        partition (list[Node]): the steps.

    Returns:
        bool
    """
    inside = set(partition)
    waiting = [u for n in partition for u in n.users if u not in inside]
    seen = set()
    while waiting:
        node = waiting.pop()
        if node in inside:
            return False
        if node not in seen:
            seen.add(node)
            waiting.extend(node.users)
    return True


def fuse_as_graphmodule(
    gm, nodes, module_name, partition_lookup_table=None, *, always_return_tuple=False
):
    """A module of some steps of another; the other is not changed.

    Args:
        gm (GraphModule): has the steps.
        nodes (list[Node]): the steps, each after those that it takes values of.
        module_name (str): what the new module is called.
        partition_lookup_table (dict): has the steps as keys; made of `nodes` if None.
        always_return_tuple (bool): whether one result is given as a tuple, too.

    Returns:
        tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]: it, what it takes and what it gives.

    Raises:
        AssertionError: a step is not of the module, or a path leads out of them and back.
    """
    for node in nodes:
        if node.graph.owning_module is not gm or node._erased:
            raise AssertionError(f"fuse_as_graphmodule(): {node} must be a step of the module")
    if not validate_partition(nodes):
        raise AssertionError("fuse_as_graphmodule(): a path leads out of the nodes and back")
    inside = set(nodes) if partition_lookup_table is None else partition_lookup_table
    graph, values, inputs = Graph(), {}, {}

    def value_of(node):
        if node not in values:
            inputs[node] = values[node] = graph.placeholder(node.name, type_expr=node.type)
            values[node].meta = dict(node.meta)
        return values[node]

    for node in nodes:
        values[node] = graph.node_copy(node, value_of)
    outputs = [n for n in nodes if any(user not in inside for user in n.users)]
    results = tuple(values[n] for n in outputs)
    graph.output(results if always_return_tuple or len(results) != 1 else results[0])
    graph.lint()
    fused, _ = lift_subgraph_as_module(gm, graph, comp_name="", class_name=module_name)
    return fused, tuple(inputs), tuple(outputs)


def insert_subgm(gm, sub_gm, orig_inputs, orig_outputs, insertion_point=None):
    """Put the call of a module in the place of the steps that it was made of.

    Args:
        gm (GraphModule): is changed; the steps stay until `erase_nodes`.
        sub_gm (GraphModule): the module.
        orig_inputs, orig_outputs (tuple[Node, ...]): what it takes and gives.
        insertion_point (Node): behind which the call goes.

    Returns:
        GraphModule: the same.
    """
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    with gm.graph.inserting_after(insertion_point or orig_outputs[-1]):
        call = gm.graph.call_module(name, args=orig_inputs)
        is_tuple = isinstance(sub_gm.graph.output_node().args[0], tuple)
        if not is_tuple and len(orig_outputs) == 1:
            orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
            return gm
    place = call
    for i, output in enumerate(orig_outputs):
        with gm.graph.inserting_after(place):
            place = gm.graph.call_function(operator.getitem, (call, i))
        output.replace_all_uses_with(place, propagate_meta=True)
    call.meta["val"] = tuple(output.meta.get("val") for output in orig_outputs)
    return gm


def erase_nodes(gm, nodes):
    """Take steps out that nobody uses any more, the last first.

    Args:
        gm (GraphModule): is changed.
        nodes (list[Node]): the steps in their order.
    """
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(gm, partitions, prefix="fused_", always_return_tuple=False):
    """Put each of several groups of steps into a module of its own.

    Args:
        gm (GraphModule): is changed.
        partitions (list[dict[Node, int | None]]): the groups.
        prefix (str): the modules are called `prefix` and a number.
        always_return_tuple (bool): whether one result is given as a tuple, too.

    Returns:
        GraphModule: the same.
    """
    for number, partition in enumerate(partitions):
        nodes = sorted(partition)
        fused, inputs, outputs = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{number}", partition, always_return_tuple=always_return_tuple
        )
        insert_subgm(gm, fused, inputs, outputs, nodes[-1])
        erase_nodes(gm, nodes)
    return stable_topological_sort(gm)
