"""Running a graph step by step, with a method for each kind of step that may be overridden."""

from __future__ import annotations

from contextlib import contextmanager

from facula.fx import traceback as fx_traceback
from facula.fx._codegen import _last_uses
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

    Example:
        >>> class Names(facula.fx.Interpreter):
        ...     def call_function(self, target, args, kwargs):
        ...         print(target.__name__)
        ...         return super().call_function(target, args, kwargs)
        >>> Names(facula.fx.symbolic_trace(lambda x: -x + 1)).run(facula.ones(1))
        neg
        add
        tensor([0.])
    """

    def __init__(self, module, garbage_collect_values=True, graph=None):
        self.module, self.graph = module, module.graph if graph is None else graph
        self.submodules = dict(module.named_modules())
        self.env, self.name = {}, "Interpreter"
        self.garbage_collect_values, self.extra_traceback = garbage_collect_values, True
        if garbage_collect_values:
            self.user_to_last_uses = _last_uses(list(self.graph.nodes))

    def run(self, *args, initial_env=None, enable_io_processing=True):
        """Run the steps; returns what the output step gives.

        Args:
            *args: the arguments of the graph, by position.
            initial_env (dict): values of steps that are not run again.
            enable_io_processing (bool): whether arguments and result have the form that generated
                code gives them.

        Raises:
            what a step raises, with the step named.
        """
        self.env = dict(initial_env or {})
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            self.env[node] = self._run_and_name(node)
            if self.garbage_collect_values:
                for done in self.user_to_last_uses.get(node, ()):
                    self.env.pop(done, None)
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def _run_and_name(self, node):
        try:
            return self.run_node(node)
        except Exception as error:
            if not self.extra_traceback:
                raise
            text = f"While executing {node.format_node()}"
            text = f"{error.args[0]}\n\n{text}" if error.args else text
            if node.stack_trace:
                text += f"\nRecorded at:\n{node.stack_trace}"
            error.args = (text, *error.args[1:])
            if isinstance(error, KeyError):
                raise RuntimeError(*error.args) from error  # a KeyError's text prints as its repr
            raise

    def boxed_run(self, args_list):
        """Run the steps on a list of arguments, which is emptied so that they can go.

        Args:
            args_list (list): one for each placeholder.
        """
        given, env = iter(args_list), {}
        for node in self.graph.nodes:
            if node.op == "placeholder":
                env[node] = next(given)
        args_list.clear()
        return self.run(initial_env=env)

    @contextmanager
    def _set_current_node(self, node):
        with fx_traceback.set_current_meta(node, f"Interpreter_{type(self).__name__}"):
            yield

    def run_node(self, n):
        """Run one step; returns its value."""
        with self._set_current_node(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    def fetch_args_kwargs_from_env(self, n):
        """The arguments of a step with values for its nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args, n):
        """Nested arguments with the values of their nodes.

        Raises:
            RuntimeError: a node has no value yet.
        """

        def value_of(node):
            if node not in self.env:
                raise RuntimeError(f"{n} needs {node}, which must have been run before")
            return self.env[node]

        return map_arg(args, value_of)

    def fetch_attr(self, target):
        """What the module has at a dotted name.

        Raises:
            RuntimeError: it has nothing there.
        """
        value = self.module
        for part in target.split("."):
            if not hasattr(value, part):
                raise RuntimeError(f"fetch_attr(): {target} must exist; there is no {part}")
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
            raise RuntimeError(f"run(): the argument {target} must be given") from None

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
    """Makes a new GraphModule of another: overridden methods say what becomes of each step.

    Args:
        module (GraphModule): the other.

    Example:
        >>> class Sigmoids(facula.fx.Transformer):
        ...     def call_function(self, target, args, kwargs):
        ...         target = facula.sigmoid if target is facula.relu else target
        ...         return super().call_function(target, args, kwargs)
        >>> traced = facula.fx.symbolic_trace(lambda x: facula.relu(x))
        >>> [str(n) for n in Sigmoids(traced).transform().graph.nodes]
        ['x', 'sigmoid', 'output']
    """

    def __init__(self, module):
        super().__init__(module)
        from facula.fx._symbolic_trace import Tracer

        class TransformerTracer(Tracer):
            def is_leaf_module(self, m, module_qualified_name):
                return True

        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = TransformerTracer()
        self.tracer.graph, self.tracer.root = self.new_graph, module

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
        with fx_traceback.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:
            made = map_aggregate(result, lambda a: a.node if isinstance(a, Proxy) else a)
            self.new_graph.output(made)
        return GraphModule(self.module, self.new_graph, type(self.module).__name__)
