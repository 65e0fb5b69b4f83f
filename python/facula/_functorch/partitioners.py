"""Splits a joint graph into a forward and a backward one, and decides what passes between them.

`min_cut_rematerialization_partition` saves the least bytes: it finds a minimum cut of the graph
whose capacities are the sizes of values (Chen et al., "Training Deep Nets with Sublinear Memory
Cost", 2016, for making values again; Ford and Fulkerson, 1956, for cuts and flows). What is cheap
to make again may be on the backward side; views cost nothing and are never saved.
"""

from __future__ import annotations

import operator

import facula
from facula._functorch._aot_autograd.program import has_effect
from facula._functorch._min_cut import INFINITE, Network
from facula.fx.graph import Graph
from facula.fx.graph_module import GraphModule
from facula.fx.node import Node, map_arg

__all__ = [
    "default_partition",
    "draw_graph",
    "extract_graph",
    "min_cut_rematerialization_partition",
]


def extract_graph(module, inputs, outputs):
    """The part of a graph that makes some of its values from others, as a module.

    Args:
        module (GraphModule): the whole.
        inputs (list[Node]): become the arguments.
        outputs (list): Nodes and constants that are returned.

    Returns:
        GraphModule

    Raises:
        RuntimeError: an output needs an argument of the whole that is not among the inputs.
    """
    graph, made = Graph(), {}
    for node in inputs:
        made[node] = graph.create_node("placeholder", node.name, (), {}, node.name)
        made[node].meta = dict(node.meta)
    needed = _needed(inputs, outputs)
    for node in module.graph.nodes:
        if node in made or node not in needed:
            continue
        if node.op == "placeholder":
            raise RuntimeError(
                f"partition: expected outputs of the inputs alone; got one that needs {node.name!r}"
            )
        made[node] = graph.node_copy(node, lambda n: made[n])
    graph.output(tuple(made[o] if isinstance(o, Node) else o for o in outputs))
    return GraphModule(module, graph)


def _needed(inputs, outputs):
    """The nodes that outputs depend on, down to the inputs."""
    known, seen = set(inputs), set()
    pending = [o for o in outputs if isinstance(o, Node)]
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        if node not in known:
            pending.extend(node.all_input_nodes)
    return seen


class _Joint:
    """A joint graph, sorted into what the forward and the backward part must have."""

    def __init__(self, module, count):
        self.module, self.nodes = module, list(module.graph.nodes)
        outputs = module.graph.output_node().args[0]
        outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        self.forward_outputs, self.gradients = outputs[:count], outputs[count:]
        placeholders = [n for n in self.nodes if n.op == "placeholder"]
        self.tangents = [n for n in placeholders if n.name.startswith("tangents")]
        self.primals = [n for n in placeholders if not n.name.startswith("tangents")]
        self.backward = self._backward_nodes()
        self.effects = [
            n for n in self.nodes if n not in self.backward and _writes(n) and n.op != "output"
        ]

    def _backward_nodes(self):
        """What depends on tangents, or was recorded in the backward pass."""
        found = set(self.tangents)
        for node in self.nodes:
            late = node.meta.get("partitioner_tag") == "is_backward"
            if late or any(used in found for used in node.all_input_nodes):
                found.add(node)
        return found

    def forward_needed(self):
        """The nodes that the results of the forward part and its effects consist of."""
        return _needed(self.primals, [*self.forward_outputs, *self.effects])

    def split(self, saved):
        """The two modules, where these values pass from one to the other."""
        numbers = [n for n in saved if not _is_tensor(n)]
        saved = [n for n in saved if _is_tensor(n)] + numbers
        forward = self._forward_module(saved)
        backward = extract_graph(self.module, saved + self.tangents, self.gradients)
        return forward, backward

    def _forward_module(self, saved):
        graph, made = Graph(), {}
        needed = _needed(self.primals, [*self.forward_outputs, *saved, *self.effects])
        random = {n for n in self.nodes if n not in self.backward and has_effect(n)}
        for node in self.nodes:
            if node in self.tangents or node.op == "output":
                continue
            if node.op == "placeholder":
                made[node] = graph.create_node("placeholder", node.name, (), {}, node.name)
                made[node].meta = dict(node.meta)
            elif node in needed or node in random:
                made[node] = graph.node_copy(node, lambda n: made[n])
        outputs = [*self.forward_outputs, *saved]
        graph.output(tuple(map_arg(o, lambda n: made[n]) for o in outputs))
        return GraphModule(self.module, graph)


def _writes(node):
    schema = getattr(node.target, "_schema", None)
    return schema is not None and any(argument.is_write for argument in schema.arguments)


def _is_tensor(node):
    value = node.meta.get("val")
    return value is None or isinstance(value, facula.Tensor)


def _is_list(node):
    return isinstance(node.meta.get("val"), (list, tuple))


def default_partition(
    joint_module,
    _joint_inputs=None,
    *,
    num_fwd_outputs,
    static_lifetime_input_indices=None,
    static_lifetime_input_nodes=None,
):
    """Split a joint graph as eager runs it: every value of the forward pass that the backward pass
    reads is saved.

    Args:
        joint_module (GraphModule): takes primals and tangents; returns the outputs of the forward
            part and then gradients.
        num_fwd_outputs (int): how many of its outputs are the forward part's.

    Returns:
        tuple[GraphModule, GraphModule]: the forward part, which returns what is saved behind its
        outputs, and the backward part, which takes that and then the tangents.
    """
    joint = _Joint(joint_module, num_fwd_outputs)
    needed = _needed(joint.primals, [g for g in joint.gradients if isinstance(g, Node)])
    read = {
        used
        for node in joint.backward
        if node in needed
        for used in node.all_input_nodes
        if used not in joint.backward
    }
    read |= {g for g in joint.gradients if isinstance(g, Node) and g not in joint.backward}
    saved = []
    for node in joint.nodes:
        if node in read and node.op != "get_attr":
            saved += _items(node) if _is_list(node) else [node]
    return joint.split(list(dict.fromkeys(saved)))


def _items(node):
    """The nodes that pick the items of one with several results."""
    return [user for user in node.users if user.target is operator.getitem]


# --- the least to save


def _bytes(node):
    value = node.meta.get("val")
    if isinstance(value, facula.Tensor):
        return max(1, value.numel() * value.element_size())
    return 1 if isinstance(value, (int, float, bool)) else INFINITE


def _is_view(node):
    if node.op != "call_function":
        return False
    if node.target is operator.getitem:
        return False
    schema = getattr(node.target, "_schema", None)
    if schema is None or not _is_tensor(node):
        return False
    returned = schema.returns[0].alias_info if schema.returns else None
    return (returned is not None and not _writes(node)) or _reads_alone(node)


def _reads_alone(node):
    return str(node.target) in ("aten.detach.default", "aten.alias.default")


def _is_cheap(node):
    """Whether a value may be made again: it is pointwise, a view or a part of another."""
    if node.op == "get_attr":
        return True
    if node.op != "call_function" or has_effect(node):
        return False
    if node.target is operator.getitem:
        return True
    tags = getattr(node.target, "tags", ())
    return facula.Tag.pointwise in tags or _is_view(node) or _makes(node)


def _makes(node):
    """Whether a node makes a tensor of numbers alone."""
    return not node.all_input_nodes and not has_effect(node)


def min_cut_rematerialization_partition(
    joint_module,
    _joint_inputs=None,
    compiler="inductor",
    *,
    num_fwd_outputs,
    static_lifetime_input_indices=None,
):
    """Split a joint graph so that the fewest bytes are saved between its parts.

    Pointwise operators and views run again in the backward part where that saves memory; products,
    reductions and random numbers run once.

    Args:
        joint_module (GraphModule), num_fwd_outputs (int): as `default_partition` takes them.

    Returns:
        tuple[GraphModule, GraphModule]: as `default_partition` gives them.
    """
    joint = _Joint(joint_module, num_fwd_outputs)
    return joint.split(_least_saved(joint))


def _least_saved(joint):
    needed = _needed(joint.primals, [g for g in joint.gradients if isinstance(g, Node)])
    forward = [n for n in joint.nodes if n in needed and n not in joint.backward]
    network, source, sink = Network(), "source", "sink"
    for node in forward:
        if node.op == "placeholder" or not _is_cheap(node):
            network.add(source, (node, "in"), INFINITE)
        network.add((node, "in"), (node, "out"), _weight(node))
        for user in node.users:
            if user in joint.backward and user in needed:
                network.add((node, "out"), sink, INFINITE)
            elif user in needed:
                network.add((node, "out"), (user, "in"), INFINITE)
    for gradient in joint.gradients:
        if isinstance(gradient, Node) and gradient not in joint.backward:
            network.add((gradient, "out"), sink, INFINITE)
    late = network.sink_side(source, sink)
    return [n for n in forward if (n, "in") not in late and (n, "out") in late]


def _weight(node):
    """What it costs to save a value: nothing is saved that is a list, or a view of what may be."""
    if node.op == "get_attr" or _is_list(node) or _is_view(node) or not _is_tensor(node):
        return INFINITE if _is_cheap(node) or _is_list(node) else _bytes(node)
    return _bytes(node)


def draw_graph(
    traced,
    fname,
    figname="fx_graph",
    clear_meta=True,
    prog=None,
    parse_stack_trace=False,
    dot_graph_shape=None,
):
    """Write a graph as a picture.

    Args:
        traced (GraphModule): what is drawn.
        fname (str): the file's name: ".svg" is written by Graphviz's program `dot`, ".dot" needs
            nothing; ".svg" is put behind a name without an ending.
        figname (str): the picture's title.

    Raises:
        RuntimeError: Graphviz is not installed.
        ValueError: the ending is another one.
    """
    import os

    from facula._functorch._drawing import as_dot
    from facula.utils.draw import svg

    base, extension = os.path.splitext(fname)
    extension = extension or ".svg"
    if extension not in (".svg", ".dot"):
        raise ValueError(f"draw_graph(): expected a file name with .svg or .dot; got {fname!r}")
    text = as_dot(traced.graph, figname)
    with open(base + extension, "w") as file:
        file.write(svg(text) if extension == ".svg" else text)
