"""What passes have in common: targets as text, order, steps that belong together."""

from __future__ import annotations

import heapq
import typing
from dataclasses import dataclass

import facula
from facula.fx.node import _get_qualified_name

__all__ = [
    "CALLABLE_NODE_OPS",
    "FxNetAccFusionsFinder",
    "get_acc_ops_name",
    "get_node_target",
    "is_node_output_tensor",
    "legalize_graph",
    "stable_topological_sort",
]

Tensors = typing.Union[tuple, list]
TensorOrTensors = typing.Union[facula.Tensor, Tensors]
NodeList = list
NodeSet = set
Names = list
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_acc_ops_name(k):
    """The name of a target as tables of back ends have it.

    Args:
        k (str | callable): the target; texts stay as they are.
    """
    if isinstance(k, str):
        return k
    if (k.__module__ or "").endswith("acc_ops"):
        return f"acc_ops.{k.__name__}"
    return f"{(k.__module__ or '').replace('torch._ops', 'torch.ops')}.{k.__name__}"


def get_node_target(submodules, node):
    """The target of a step as text: a function's full name, a module's class, a method's name.

    Args:
        submodules (dict[str, Module]): the modules by name.
        node (Node): a step that calls something.

    Raises:
        AssertionError: it calls nothing.
    """
    if node.op not in CALLABLE_NODE_OPS:
        calls = ", ".join(sorted(CALLABLE_NODE_OPS))
        raise AssertionError(f"get_node_target(): op must be one of {calls}; got {node.op}")
    if node.op == "call_module":
        module = submodules[node.target]
        kind = getattr(module, "_base_class_origin", type(module))
        return get_acc_ops_name(kind)
    if node.op == "call_function":
        target = node.target
        is_acc = "acc_ops" in (getattr(target, "__module__", None) or "")
        return f"acc_ops.{target.__name__}" if is_acc else _get_qualified_name(target)
    return node.target


def is_node_output_tensor(node):
    """Whether a step's value is a tensor, by `meta["type"]`."""
    kind = node.meta.get("type")
    return kind is not None and issubclass(kind, facula.Tensor)


def _in_topological_order(gm, next_of):
    """The steps of a module in an order in which each comes after its inputs.

    Args:
        next_of (callable): takes one of the collected ready steps out; they come in graph order.
    """
    waiting = {node: len(node.all_input_nodes) for node in gm.graph.nodes}
    places = {node: i for i, node in enumerate(gm.graph.nodes)}
    ready = [(places[n], n) for n in gm.graph.nodes if not waiting[n]]
    ordered = []
    while ready:
        _, node = next_of(ready)
        ordered.append(node)
        for user in node.users:
            waiting[user] -= 1
            if not waiting[user]:
                ready.append((places[user], user))
                if next_of is heapq.heappop:
                    heapq.heapify(ready)
    if len(ordered) < len(places):
        left = ", ".join(str(n) for n in places if waiting[n])
        raise RuntimeError(f"legalize_graph(): the graph must have no cycles; got one among {left}")
    return ordered


def _reordered(gm, ordered):
    """A module with its steps in this order, the output last."""
    for node in sorted(ordered, key=lambda n: n.op == "output"):
        gm.graph._root.prepend(node)
    gm.recompile()
    return gm


def legalize_graph(gm):
    """Put the steps of a module in an order in which each comes after its inputs.

    Args:
        gm (GraphModule): is changed.

    Returns:
        GraphModule: the same.

    Raises:
        RuntimeError: steps depend on one another in a circle.
    """
    return _reordered(gm, _in_topological_order(gm, lambda ready: ready.pop(0)))


def stable_topological_sort(gm):
    """`legalize_graph` that keeps the order of steps wherever it can."""
    return _reordered(gm, _in_topological_order(gm, heapq.heappop))


class FxNetAccFusionsFinder:
    """Finds steps of a back end that must stay together: they hand on more than tensors.

    Args:
        module (GraphModule): has the steps.
        acc_nodes (set[Node]): those of the back end.
    """

    def __init__(self, module, acc_nodes):
        self.module, self.nodes, self.acc_nodes = module, list(module.graph.nodes), acc_nodes

    @dataclass
    class FusionGroup:
        """Steps that stay together."""

        top_node_idx: int
        nodes: set
        inputs: set
        nodes_need_process: set

        def add_node(self, node):
            """Add a step; its inputs from outside become the group's."""
            if node in self.nodes:
                return
            self.nodes_need_process.add(node)
            self.nodes.add(node)
            self.inputs.discard(node)
            self.inputs.update(
                n for n in node.all_input_nodes if n.op in CALLABLE_NODE_OPS and n not in self.nodes
            )

    def recursive_add_node(self, fusion_group, inputs, visited=None):
        """Add what lies between the group and those inputs of it that depend on the group.

        Args:
            fusion_group (FusionGroup): grows.
            inputs (set[Node]): where to begin.
            visited (set[Node]): what was looked at.

        Returns:
            bool: whether any input depends on the group.
        """
        depends = False
        for node in inputs:
            if visited is not None:
                if node in visited:
                    continue
                visited.add(node)
            if node in fusion_group.nodes:
                depends = True
            elif node.op in CALLABLE_NODE_OPS and self._comes_after(fusion_group, node):
                if self.recursive_add_node(fusion_group, node.all_input_nodes, visited):
                    fusion_group.add_node(node)
                    depends = True
        return depends

    def _comes_after(self, group, node):
        return self.nodes.index(node) >= group.top_node_idx

    def __call__(self):
        found = {}
        acc = list(self.acc_nodes)
        for node in acc:
            if node in found or node.op not in CALLABLE_NODE_OPS or is_node_output_tensor(node):
                continue
            group = self.FusionGroup(
                self.nodes.index(node),
                {node},
                {n for n in node.all_input_nodes if n.op in CALLABLE_NODE_OPS},
                {node},
            )
            while group.nodes_need_process:
                self._grow(group, group.nodes_need_process.pop())
            if not group.nodes <= self.acc_nodes:
                self.acc_nodes -= group.nodes
            else:
                for member in group.nodes:
                    merged = found.get(member, set()) | group.nodes
                    for other in merged:
                        found[other] = merged
        return found

    def _grow(self, group, node):
        self.recursive_add_node(group, set(group.inputs), visited=set())
        if not is_node_output_tensor(node):
            for user in node.users:
                if user.op in CALLABLE_NODE_OPS:
                    group.add_node(user)
        for arg in node.all_input_nodes:
            if arg.op not in CALLABLE_NODE_OPS or is_node_output_tensor(arg):
                continue
            group.add_node(arg)
            group.top_node_idx = min(group.top_node_idx, self.nodes.index(arg))
