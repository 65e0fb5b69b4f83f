"""Graphs written anew, with operators taken apart."""

from __future__ import annotations

from facula.fx.experimental._proxies import _GraphAppendingTracerEx, track_tensor_tree
from facula.fx.experimental.proxy_tensor import (
    ProxyTorchDispatchMode,
    get_innermost_proxy_mode,
    make_fx,
)
from facula.fx.interpreter import Interpreter
from facula.fx.proxy import Proxy
from facula.utils._pytree import tree_map


class DecompositionInterpreter(Interpreter):
    """Runs a graph module and writes a new graph, in which operators are taken apart.

    Args:
        module (GraphModule): what is run.
        new_graph (Graph): takes the nodes.
        decomposition_table (dict): OpOverload to a function that is traced in its place.
    """

    def __init__(self, module, new_graph, decomposition_table=None, **kwargs):
        super().__init__(module, **kwargs)
        self.new_graph, self.tracer = new_graph, _GraphAppendingTracerEx(new_graph)
        self.mode = ProxyTorchDispatchMode(
            self.tracer, "real", decomposition_table=dict(decomposition_table or {})
        )

    def placeholder(self, target, args, kwargs):
        """Add an argument."""
        value = super().placeholder(target, args, kwargs)
        return self._tracked(value, Proxy(self.new_graph.placeholder(target), self.tracer))

    def get_attr(self, target, args, kwargs):
        """Add the reading of an attribute."""
        value = super().get_attr(target, args, kwargs)
        return self._tracked(value, Proxy(self.new_graph.get_attr(target), self.tracer))

    def _tracked(self, value, proxy):
        return track_tensor_tree(value, proxy, constant=None, tracer=self.tracer)

    def output(self, target, args, kwargs):
        """End the graph."""
        value = super().output(target, args, kwargs)
        nodes = tree_map(self.tracer.unwrap_proxy, value)
        self.new_graph.output(tree_map(lambda a: a.node if isinstance(a, Proxy) else a, nodes))
        return value

    def run(self, *args, **kwargs):
        """Run the module; returns what it gives."""
        with self.mode:
            return super().run(*args, **kwargs)


def selective_decompose(joint_gm, *args, decomposition, should_decompose, trace_joint_graph=False):
    """A graph module in which some nodes are taken apart.

    Args:
        joint_gm (GraphModule): the program.
        *args (Tensors): what it is run on.
        decomposition (dict): OpOverload to a function that is traced in its place.
        should_decompose (callable): of a Node; whether it is taken apart.
        trace_joint_graph (bool): whether the program holds a backward pass; it makes no difference.

    Returns:
        GraphModule
    """

    class Selective(Interpreter):
        def run_node(self, n):
            table = decomposition if should_decompose(n) else {}
            mode = get_innermost_proxy_mode()
            before, mode.decomposition_table = mode.decomposition_table, table
            try:
                return super().run_node(n)
            finally:
                mode.decomposition_table = before

    return make_fx(lambda *given: Selective(joint_gm).run(*given))(*args)
