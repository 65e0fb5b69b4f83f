"""Running a graph step by step, with a method for each kind of step that may be overridden."""

from __future__ import annotations

from facula.fx.graph import Graph
from facula.fx.graph_module import GraphModule
from facula.fx.node import map_aggregate, map_arg
from facula.fx.proxy import Proxy

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a GraphModule step by step.

    Args:
        module (GraphModule): what is run.
        garbage_collect_values (bool): whether values are let go of after their last use.
        graph (Graph): another graph for the same module.
    """

    def __init__(self, module, garbage_collect_values=True, graph=None):
        self.module, self.graph = module, module.graph if graph is None else graph
        self.submodules = dict(module.named_modules())
        self.env, self.garbage_collect_values = {}, garbage_collect_values
        self.extra_traceback = True

    def run(self, *args, initial_env=None, enable_io_processing=True):
        """Run the steps; returns what the output step gives.

        Args:
            *args: the arguments of the graph, by position.
            initial_env (dict): values of steps that are not run again.
        """
        self.env, self.args_iter = dict(initial_env or {}), iter(args)
        last = self._last_uses() if self.garbage_collect_values else {}
        for node in self.graph.nodes:
            if node in self.env:
                continue
            self.env[node] = self.run_node(node)
            if node.op == "output":
                return self.env[node]
            for done in last.get(node, ()):
                self.env.pop(done, None)
        return None

    def _last_uses(self):
        last, seen = {}, set()
        for node in reversed(self.graph.nodes):
            for used in node.all_input_nodes:
                if used not in seen:
                    seen.add(used)
                    last.setdefault(node, []).append(used)
        return last

    def run_node(self, n):
        """Run one step; returns its value."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def fetch_args_kwargs_from_env(self, n):
        """The arguments of a step with values for its nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args, n):
        """Nested arguments with the values of their nodes."""
        return map_arg(args, lambda node: self.env[node])

    def fetch_attr(self, target):
        """What the module has at a dotted name."""
        value = self.module
        for part in target.split("."):
            value = getattr(value, part)
        return value

    def placeholder(self, target, args, kwargs):
        """An argument of the graph: the next that was given, or its default."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target, args, kwargs):
        """An attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target, args, kwargs):
        """The result of a function."""
        return target(*args, **kwargs)

    def call_method(self, target, args, kwargs):
        """The result of a method of the first argument."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target, args, kwargs):
        """The result of a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target, args, kwargs):
        """What the graph returns."""
        return args[0]


class Transformer(Interpreter):
    """Makes a new GraphModule of another: overridden methods say what becomes of each step."""

    def __init__(self, module):
        super().__init__(module)
        from facula.fx._symbolic_trace import Tracer

        self.new_graph = Graph()
        self.tracer = Tracer()
        self.tracer.graph, self.tracer.root, self.tracer._constants = self.new_graph, module, {}

    def placeholder(self, target, args, kwargs):
        """An argument, as a proxy of the new graph."""
        default = args[0] if args else ...
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target, args, kwargs):
        """The reading of an attribute, as a proxy of the new graph."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target, args, kwargs):
        """The call of a submodule, as a step of the new graph."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target, args, kwargs):
        """The call of a function, as a step of the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self):
        """The new GraphModule."""
        result = super().run()
        if result is not None:
            self.new_graph.output(
                map_aggregate(result, lambda a: a.node if isinstance(a, Proxy) else a)
            )
        return GraphModule(self.module, self.new_graph, type(self.module).__name__)
