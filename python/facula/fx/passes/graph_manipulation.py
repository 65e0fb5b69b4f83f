"""Targets replaced and sizes in bytes."""

from __future__ import annotations

from typing import NamedTuple

from facula.fx.graph import Graph
from facula.fx.node import map_arg
from facula.fx.passes.shape_prop import ShapeProp, TensorMetadata

__all__ = [
    "get_size_of_all_nodes",
    "get_size_of_node",
    "get_tensor_meta",
    "replace_target_nodes_with",
    "size_bytes",
]


class size_bytes(NamedTuple):  # noqa: N801
    """The bytes of a step's value, and with those of its module's parameters."""

    output_size: int
    total_size: int


def replace_target_nodes_with(fx_module, old_op, old_target, new_op, new_target):
    """Give steps of one kind another kind and target.

    Args:
        fx_module (GraphModule): is changed.
        old_op (str), old_target: which steps.
        new_op (str), new_target: what they become.
    """
    graph, values = Graph(), {}
    for node in fx_module.graph.nodes:
        if node.op == old_op and node.target == old_target:
            args = map_arg(node.args, lambda n: values[n])
            kwargs = map_arg(node.kwargs, lambda n: values[n])
            if new_op not in ("call_function", "call_method", "call_module"):
                raise AssertionError(
                    f"replace_target_nodes_with(): new_op must call something; got {new_op}"
                )
            values[node] = graph.create_node(new_op, new_target, args, kwargs, node.name)
        else:
            values[node] = graph.node_copy(node, lambda n: values[n])
    fx_module.graph = graph


def get_size_of_all_nodes(fx_module, args=None):
    """Give each step `size_bytes`.

    Args:
        fx_module (GraphModule): its steps are changed.
        args (list[Tensor]): the module runs on them first, if given.
    """
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op == "output":
            break
        node.size_bytes = get_size_of_node(fx_module, node)


def get_tensor_meta(node):
    """What is known of a step's value.

    Raises:
        RuntimeError: nothing; ShapeProp finds it out.
    """
    meta = node.meta.get("tensor_meta")
    if not isinstance(meta, TensorMetadata):
        raise RuntimeError(f"get_tensor_meta(): {node} must have tensor_meta; run ShapeProp first")
    return meta


def get_size_of_node(fx_module, node):
    """The bytes of a step's value, and with those of its module's parameters.

    Args:
        fx_module (GraphModule): has the modules.
        node (Node): the step.

    Returns:
        size_bytes
    """
    total = 0
    if node.op == "call_module":
        module = fx_module.get_submodule(node.target)
        total += sum(
            t.numel() * t.element_size() for t in (*module.parameters(), *module.buffers())
        )
    meta = get_tensor_meta(node)
    count = 1
    for size in meta.shape:
        count *= size
    output = count * meta.dtype.itemsize
    return size_bytes(output, total + output)
