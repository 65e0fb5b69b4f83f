"""Graphs made faster for inference."""

from __future__ import annotations

import copy

import facula
from facula import nn
from facula.fx._symbolic_trace import Tracer, symbolic_trace
from facula.fx.graph import Graph
from facula.fx.graph_module import GraphModule
from facula.fx.interpreter import Transformer

__all__ = [
    "UnionFind",
    "extract_subgraph",
    "fuse",
    "matches_module_pattern",
    "optimize_for_inference",
    "remove_dropout",
    "replace_node_module",
]


def _parent_name(target):
    """A dotted name as the part before its last dot and the part behind it."""
    parent, _, name = target.rpartition(".")
    return parent, name


def matches_module_pattern(pattern, node, modules):
    """Whether a step and the one before it call modules of certain classes.

    Args:
        pattern (tuple[type, type]): the class of the step before, and of the step.
        node (Node): the step.
        modules (dict[str, Module]): the modules by name.
    """
    if not node.args:
        return False
    for kind, current in zip(pattern, (node.args[0], node), strict=True):
        if not isinstance(current, facula.fx.Node) or current.op != "call_module":
            return False
        if type(modules.get(current.target)) is not kind:
            return False
    return True


def replace_node_module(node, modules, new_module):
    """Put a module in the place of the one that a step calls.

    Args:
        node (Node): the step.
        modules (dict[str, Module]): the modules by name; is changed.
        new_module (Module): the new one.
    """
    parent, name = _parent_name(node.target)
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model, inplace=False, no_trace=False):
    """Fold batch norms into the convolutions and linear layers before them, for inference.

    Args:
        model (Module): in eval mode.
        inplace (bool): whether its modules are changed; a copy's are otherwise.
        no_trace (bool): whether `model` is a GraphModule that is changed itself.

    Returns:
        GraphModule

    Raises:
        AssertionError: a module is in training mode.

    Example:
        >>> model = nn.Sequential(nn.Conv1d(1, 2, 1), nn.BatchNorm1d(2)).eval()
        >>> [name for name, _ in fuse(model).named_children()]
        ['0']
    """
    from facula.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

    pairs = [
        (nn.Conv1d, nn.BatchNorm1d, fuse_conv_bn_eval),
        (nn.Conv2d, nn.BatchNorm2d, fuse_conv_bn_eval),
        (nn.Conv3d, nn.BatchNorm3d, fuse_conv_bn_eval),
        (nn.Linear, nn.BatchNorm1d, fuse_linear_bn_eval),
    ]
    model = model if inplace else copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    for first, second, fold in pairs:
        for node in graph.nodes:
            if not matches_module_pattern((first, second), node, modules):
                continue
            if len(node.args[0].users) > 1:
                continue  # others take the value before the norm
            norm = modules[node.target]
            if norm.training or modules[node.args[0].target].training:
                raise AssertionError("fuse(): model must be in eval mode")
            if not norm.track_running_stats:
                continue
            replace_node_module(node.args[0], modules, fold(modules[node.args[0].target], norm))
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    return GraphModule(traced, graph)


def remove_dropout(model):
    """A module without the dropout layers of another.

    Args:
        model (Module): the other.

    Returns:
        GraphModule
    """

    class DropoutRemover(Transformer):
        def call_module(self, target, args, kwargs):
            if isinstance(self.submodules[target], nn.Dropout):
                return args[0]
            return super().call_module(target, args, kwargs)

    return DropoutRemover(symbolic_trace(model)).transform()


def extract_subgraph(orig_module, nodes, inputs, outputs):
    """A module of some steps of a graph.

    Args:
        orig_module (Module): has what the steps name.
        nodes (list[Node]): the steps.
        inputs (list[Node]): the steps whose values are its arguments.
        outputs (list[Node]): the steps whose values it returns.

    Returns:
        GraphModule
    """
    graph, values = Graph(), {}
    for node in inputs:
        values[node] = graph.placeholder(node.name)
    for node in nodes:
        values[node] = graph.node_copy(node, lambda x: values[x])
    graph.output([values[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)


def optimize_for_inference(model, pass_config=None, tracer=Tracer):
    """A module without dropout, with batch norms folded into the layers before them.

    Args:
        model (Module): in eval mode.
        pass_config (dict): `{"conv_bn_fuse": False}` and `{"remove_dropout": False}` switch a part
            off. `mkldnn_layout_optimize` has no effect: layouts are chosen by the kernels.
        tracer (type): the Tracer.

    Returns:
        GraphModule

    Raises:
        RuntimeError: an unknown part.
    """
    config = {"conv_bn_fuse": True, "remove_dropout": True, "mkldnn_layout_optimize": None}
    unknown = set(pass_config or {}) - set(config)
    if unknown:
        raise RuntimeError(f"optimize_for_inference(): unknown parts {sorted(unknown)}")
    config.update(pass_config or {})
    if config["conv_bn_fuse"]:
        model = fuse(model)
    if config["remove_dropout"]:
        model = remove_dropout(model)
    chosen = tracer()
    return GraphModule(model, chosen.trace(copy.deepcopy(model)))


class UnionFind:
    """Disjoint sets of numbers, each known by one of its members.

    Args:
        n (int): the numbers are below it.
    """

    def __init__(self, n):
        self.parent, self.size = [None] * n, [0] * n

    def make_set(self, v):
        """Let a number be a set of its own."""
        self.parent[v], self.size[v] = v, 1

    def find(self, v):
        """The member by which a number's set is known.

        Raises:
            AssertionError: the number is in no set.
        """
        if self.parent[v] is None:
            raise AssertionError(f"find(): {v} must be in a set")
        while self.parent[v] != v:
            self.parent[v] = self.parent[self.parent[v]]
            v = self.parent[v]
        return v

    def join(self, a, b):
        """Unite two sets; returns the member by which the result is known."""
        a, b = self.find(a), self.find(b)
        if a == b:
            return a
        if self.size[a] < self.size[b]:
            a, b = b, a
        self.parent[b] = a
        self.size[a] += self.size[b]
        return a
