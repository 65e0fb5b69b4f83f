"""Tracing: a module is run on proxies, and what they record is its graph."""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import sys
from types import FunctionType

import facula
from facula.fx.graph import Graph
from facula.fx.graph_module import GraphModule
from facula.fx.node import map_aggregate
from facula.fx.proxy import Proxy, TracerBase

__all__ = ["PH", "ProxyableClassMeta", "Tracer", "is_fx_tracing", "symbolic_trace", "wrap"]

_wrapped = []  # (globals, name) of functions that are recorded, not looked into
_tracing = 0


class _Placeholder:
    def __repr__(self):
        return "PH"


PH = _Placeholder()


def is_fx_tracing():
    """Whether a trace is being made."""
    return _tracing > 0


class ProxyableClassMeta(type):
    """A metaclass: making an object with proxies records the call of its class."""

    def __call__(cls, *args, **kwargs):
        found = _proxies_in((args, kwargs))
        if found and is_fx_tracing():
            return found[0].tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


def _proxies_in(nest):
    found = []
    map_aggregate(nest, lambda a: found.append(a) if isinstance(a, Proxy) else a)
    return found


def wrap(fn_or_name):
    """Mark a function of the calling module: traces record its call and do not look into it.

    Args:
        fn_or_name (callable | str): a function, or its name in the module ("len").

    Returns:
        the argument, so that it serves as a decorator.

    Raises:
        RuntimeError: neither a function nor a name.
        NotImplementedError: not called at the top level of a module.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    name = fn_or_name.__name__ if callable(fn_or_name) else fn_or_name
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped.append((frame.f_globals, name))
    return fn_or_name


def _recorded(function):
    """A function that records its call where an argument is a proxy."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        found = _proxies_in((args, kwargs))
        if found:
            return found[0].tracer.create_proxy("call_function", function, args, kwargs)
        return function(*args, **kwargs)

    return call


class _Patches:
    """Context manager: attributes and globals that are others while a trace is made."""

    def __init__(self):
        self._undo = []

    def attribute(self, owner, name, value):
        had = name in vars(owner)
        before = vars(owner).get(name)
        setattr(owner, name, value)
        self._undo.append(lambda: setattr(owner, name, before) if had else delattr(owner, name))

    def item(self, table, name, value):
        had, before = name in table, table.get(name)
        table[name] = value
        self._undo.append(lambda: table.__setitem__(name, before) if had else table.pop(name))

    def __enter__(self):
        global _tracing
        _tracing += 1
        return self

    def __exit__(self, *exception):
        global _tracing
        _tracing -= 1
        for undo in reversed(self._undo):
            undo()


class Tracer(TracerBase):
    """Makes graphs of modules and functions; subclasses choose what is looked into.

    Args:
        autowrap_modules (tuple[module]): modules whose functions are recorded when a proxy comes.
        autowrap_functions (tuple[callable]): functions of the traced code's globals, likewise.
    """

    def __init__(
        self, autowrap_modules=(math,), autowrap_functions=(), param_shapes_constant=False
    ):
        super().__init__()
        self._autowrap_modules = tuple(autowrap_modules)
        self._autowrap_functions = {id(function) for function in autowrap_functions}

    def is_leaf_module(self, m, module_qualified_name):
        """Whether a module's call is one step: modules of `nn` but Sequential."""
        top = type(m).__module__.partition(".")[0]
        is_own = type(m).__module__.startswith(f"{top}.nn") and top == facula.__name__
        return is_own and not isinstance(m, facula.nn.Sequential)

    def path_of_module(self, mod):
        """The name of a submodule in the module that is traced; NameError if it has none."""
        for name, module in self.root.named_modules():
            if module is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(self, m, forward, args, kwargs):
        """What the call of a module does while it is traced."""
        name = self.path_of_module(m)
        if self.is_leaf_module(m, name):
            return self.create_proxy("call_module", name, args, kwargs)
        return forward(*args, **kwargs)

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        """What reading an attribute of a module gives: a proxy for parameters of its own."""
        if not isinstance(attr_val, facula.nn.Parameter):
            return attr_val
        for name, parameter in self.root.named_parameters():
            if parameter is attr_val:
                if name not in parameter_proxy_cache:
                    parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {})
                return parameter_proxy_cache[name]
        return attr_val

    def create_arg(self, a):
        """What a node keeps of an argument; parameters, buffers and tensors become attributes."""
        return map_aggregate(a, self._argument)

    def _argument(self, a):
        if isinstance(a, facula.nn.Parameter):
            for name, parameter in self.root.named_parameters():
                if parameter is a:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, facula.Tensor):
            for name, buffer in self.root.named_buffers():
                if buffer is a:
                    return self.create_node("get_attr", name, (), {})
            return self.create_node("get_attr", self._constant_name(a), (), {})
        return self._leaf(a)

    def _constant_name(self, value):
        for name, known in self._constants.items():
            if known is value:
                return name
        number = len(self._constants)
        while hasattr(self.root, f"_tensor_constant{number}"):
            number += 1
        name = f"_tensor_constant{number}"
        self._constants[name] = value
        setattr(self.root, name, value)
        return name

    def create_args_for_root(self, root_fn, is_module, concrete_args=None):
        """The function to be traced and the proxies of its arguments."""
        signature = inspect.signature(root_fn)
        concrete = concrete_args or {}
        if isinstance(concrete, tuple):
            concrete = dict(zip(list(signature.parameters)[1:], concrete, strict=False))
        args, keywords = [self.root] if is_module else [], {}
        parameters = list(signature.parameters.values())[1 if is_module else 0 :]
        for parameter in parameters:
            kind = parameter.kind
            star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(kind, "")
            if parameter.name in concrete and concrete[parameter.name] is not PH:
                value = concrete[parameter.name]
                self.create_proxy("placeholder", parameter.name, (value,), {})
            else:
                default = () if parameter.default is parameter.empty else (parameter.default,)
                value = self.create_proxy("placeholder", star + parameter.name, default, {})
            if kind is parameter.KEYWORD_ONLY:
                keywords[parameter.name] = value
            elif not star:
                args.append(value)
            else:
                raise NotImplementedError(
                    f"symbolic_trace: {star}{parameter.name} of {root_fn.__qualname__}() cannot be "
                    "traced; give it as concrete_args"
                )
        return functools.partial(root_fn, **keywords), args

    def trace(self, root, concrete_args=None):
        """The graph of a module or function.

        Args:
            root (Module | callable): what is traced.
            concrete_args (dict): values of arguments that are fixed.

        Returns:
            Graph

        Raises:
            TraceError: the program depends on a value that is not known.
        """
        is_module = isinstance(root, facula.nn.Module)
        self.root = root if is_module else facula.nn.Module()
        function = type(root).forward if is_module else root
        self.graph, self._constants = Graph(tracer_cls=type(self)), {}
        function, args = self.create_args_for_root(function, is_module, concrete_args)
        cache = {}
        own_call, own_getattr = facula.nn.Module.__call__, facula.nn.Module.__getattr__

        def call(module, *args, **kwargs):
            def forward(*args, **kwargs):
                return own_call(module, *args, **kwargs)

            return self.call_module(module, forward, args, kwargs)

        def get(module, name):
            return self.getattr(name, own_getattr(module, name), cache)

        with _Patches() as patches:
            patches.attribute(facula.nn.Module, "__call__", call)
            patches.attribute(facula.nn.Module, "__getattr__", get)
            for module in self._autowrap_modules:
                for name, value in list(vars(module).items()):
                    if not name.startswith("_") and callable(value):
                        patches.item(vars(module), name, _recorded(value))
            for table, name in _wrapped:
                value = table[name] if name in table else getattr(builtins, name)
                patches.item(table, name, _recorded(value))
            self._wrap_globals(getattr(function.func, "__globals__", {}), patches)
            result = function(*args)
        self.create_node("output", "output", (self.create_arg(result),), {})
        return self.graph

    def _wrap_globals(self, table, patches):
        for name, value in list(table.items()):
            if id(value) in self._autowrap_functions and isinstance(value, FunctionType):
                patches.item(table, name, _recorded(value))


def symbolic_trace(root, concrete_args=None):
    """A module written from the graph of another, or of a function.

    Args:
        root (Module | callable): what is traced.
        concrete_args (dict): values of arguments that are fixed.

    Returns:
        GraphModule

    Raises:
        TraceError: the program depends on a value that is not known.

    Example:
        >>> traced = facula.fx.symbolic_trace(facula.nn.Sequential(facula.nn.ReLU()))
        >>> [node.op for node in traced.graph.nodes]
        ['placeholder', 'call_module', 'output']
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, facula.nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
