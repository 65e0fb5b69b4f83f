"""Tracing: a module is run on proxies, and what they record is its graph."""

from __future__ import annotations

import collections
import contextlib
import copy
import inspect
import math
import threading
import types
import warnings
from itertools import chain

import facula
import facula.utils._pytree as pytree
from facula.fx._patching import (
    Patches,
    find_proxy,
    patch_wrapped_functions,
    wrap,
    wrap_functions_of,
)
from facula.fx.graph import Graph, _PyTreeCodeGen, _PyTreeInfo
from facula.fx.graph_module import GraphModule
from facula.fx.node import base_types
from facula.fx.proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase

__all__ = [
    "PH",
    "PHBase",
    "PHWithMeta",
    "ProxyableClassMeta",
    "Tracer",
    "is_fx_symbolic_tracing",
    "is_fx_tracing",
    "symbolic_trace",
    "wrap",
]

_tracing = threading.local()
_proxyable_classes = {}


def is_fx_tracing():
    """Whether this thread makes a trace."""
    return getattr(_tracing, "depth", 0) > 0


def is_fx_symbolic_tracing():
    """Whether this thread makes a trace, and not for `compile`."""
    return is_fx_tracing() and not facula.compiler.is_compiling()


@contextlib.contextmanager
def _is_fx_tracing_context():
    _tracing.depth = getattr(_tracing, "depth", 0) + 1
    try:
        yield
    finally:
        _tracing.depth -= 1


class PHBase:
    """An argument of `concrete_args` that stays an argument."""

    def __repr__(self):
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """An argument that stays one, with attributes for its placeholder.

    Args:
        ph_key (str): the name of the placeholder.
    """

    def __init__(self, ph_key=None):
        super().__init__()
        self.ph_key = ph_key


class ProxyableClassMeta(type):
    """A metaclass: making an object with proxies records the call of its class.

    Example:
        >>> class Pair(metaclass=facula.fx.ProxyableClassMeta):
        ...     def __init__(self, a, b):
        ...         self.a, self.b = a, b
        >>> graph = facula.fx.Tracer().trace(lambda x: Pair(x, 2 * x))
        >>> [node.name for node in graph.nodes]
        ['x', 'mul', 'pair', 'output']
    """

    def __init__(cls, name, bases, attrs):
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args, **kwargs):
        if is_fx_tracing():
            found = find_proxy((args, kwargs))
            if found is not None:
                return found.tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


def _assert_is_none(value, msg):
    """What traces record for an argument that was fixed to None."""
    if isinstance(value, Proxy):  # generated code is traced again
        return value.tracer.create_proxy("call_function", _assert_is_none, (value, msg), {})
    if value is not None:
        raise AssertionError(msg)
    return None


def _positional(function, count):
    """The same function with every argument, also *rest and **named, given by position."""
    code = function.__code__
    flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    plain = code.replace(
        co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=flags
    )
    made = types.FunctionType(
        plain, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    return made


def _annotation(function, name):
    """An annotation of a function; those of the package itself are written as texts."""
    annotation = getattr(function, "__annotations__", {}).get(name)
    is_own = (getattr(function, "__module__", None) or "").partition(".")[0] == facula.__name__
    if not isinstance(annotation, str) or not is_own:
        return annotation
    try:
        return eval(annotation, function.__globals__)
    except (NameError, AttributeError, TypeError):
        return None  # a name that only type checkers import


class Tracer(TracerBase):
    """Makes graphs of modules and functions; subclasses choose what is looked into.

    Args:
        autowrap_modules (tuple[module]): modules whose functions are recorded when a proxy comes.
        autowrap_functions (tuple[callable]): functions of the traced code's globals, likewise.
        param_shapes_constant (bool): whether sizes of parameters are numbers and not recorded.

    Example:
        >>> class Whole(facula.fx.Tracer):
        ...     def is_leaf_module(self, m, name):
        ...         return False
        >>> graph = Whole().trace(facula.nn.Sequential(facula.nn.Flatten()))
        >>> [node.name for node in graph.nodes]
        ['input_1', 'flatten', 'output']
    """

    def __init__(
        self, autowrap_modules=(math,), autowrap_functions=(), param_shapes_constant=False
    ):
        super().__init__()
        functions = chain(
            autowrap_functions, *(vars(module).values() for module in autowrap_modules)
        )
        self._autowrap_function_ids = {
            id(f)
            for f in functions
            if callable(f) and not getattr(f, "__name__", "_").startswith("_")
        }
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths, self.root_module_name = None, ""
        self.num_calls, self.root = {}, None
        self.tensor_attrs, self._qualname_counter = {}, collections.defaultdict(int)

    def get_fresh_qualname(self, prefix):
        """A name of the root's that is free: `prefix` and a number."""
        number = self._qualname_counter[prefix]
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        self._qualname_counter[prefix] = number + 1
        return f"{prefix}{number}"

    def is_leaf_module(self, m, module_qualified_name):
        """Whether a module's call is one step: modules of `nn` but Sequential.

        Args:
            m (Module): the module.
            module_qualified_name (str): its dotted name.
        """
        place = type(m).__module__
        is_own = place.startswith((f"{facula.__name__}.nn", f"{facula.__name__}.ao.nn"))
        return is_own and not isinstance(m, facula.nn.Sequential)

    def path_of_module(self, mod):
        """The name of a submodule in the module that is traced; NameError if it has none."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise NameError(
                    f"path_of_module(): {type(mod).__name__} must be a submodule of root"
                )
            return path
        for name, module in self.root.named_modules():
            if module is mod:
                return name
        raise NameError(f"path_of_module(): {type(mod).__name__} must be a submodule of root")

    def call_module(self, m, forward, args, kwargs):
        """What the call of a module does while it is traced.

        Args:
            m (Module): the module.
            forward (callable): runs it.
            args (tuple), kwargs (dict): the arguments.
        """
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))):
            calls = self.num_calls.get(path, 0)
            self.num_calls[path] = calls + 1
            key = f"{path}@{calls}" if calls else path
            self.module_stack[key] = path, type(m)
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack.pop(key)

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        """What reading an attribute of a module gives: a proxy for parameters of its own.

        Args:
            attr (str): the name.
            attr_val: what it is.
            parameter_proxy_cache (dict[str, Proxy]): the proxies made so far, by dotted name.
        """
        if isinstance(attr_val, facula.nn.Parameter):
            named = self.root.named_parameters()
        elif self.proxy_buffer_attributes and isinstance(attr_val, facula.Tensor):
            named = self.root.named_buffers()
        else:
            return attr_val
        for name, value in named:
            if value is attr_val:
                if name not in parameter_proxy_cache:
                    parameter_proxy_cache[name] = self._attribute_proxy(name, attr_val)
                return parameter_proxy_cache[name]
        return attr_val

    def _attribute_proxy(self, name, value):
        factory = None
        if self.param_shapes_constant:
            # The class checks that it is a parameter: sizes of buffers may change.
            factory = lambda node: ParameterProxy(self, node, name, value)  # noqa: E731
        return self.create_proxy("get_attr", name, (), {}, proxy_factory_fn=factory)

    def create_arg(self, a):
        """What a node keeps of an argument; parameters, buffers and tensors become attributes.

        Raises:
            NameError: a parameter that the root does not have.
        """
        if isinstance(a, facula.nn.Parameter):
            for name, parameter in self.root.named_parameters():
                if parameter is a:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("create_arg(): a parameter must be a member of the traced module")
        if isinstance(a, facula.Tensor):
            for name, buffer in self.root.named_buffers():
                if buffer is a:
                    return self.create_node("get_attr", name, (), {})
            return self._constant(a, "_tensor_constant")
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            args = tuple(self.create_arg(item) for item in a)
            return self.create_node("call_function", type(a), args, {})
        if type(a) in _proxyable_classes:
            return self._constant(a, f"_{type(a).__name__}_constant_")
        return super().create_arg(a)

    def _constant(self, value, prefix):
        known = self.tensor_attrs.get(id(value))
        if known is None:
            known = self.get_fresh_qualname(prefix), value
            self.tensor_attrs[id(value)] = known
            setattr(self.root, known[0], value)
        return self.create_node("get_attr", known[0], (), {})

    def create_args_for_root(self, root_fn, is_module, concrete_args=None):
        """The function to be traced, with all arguments by position, and their proxies.

        Args:
            root_fn (callable): a function; the first argument of a module's is the module.
            is_module (bool): whether it is a module's.
            concrete_args (dict | tuple): values of arguments that are fixed.

        Returns:
            tuple[callable, list]
        """
        seen = inspect.unwrap(root_fn)
        code = seen.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames)
        if is_module and count == 0:
            raise RuntimeError(f"trace(): {root_fn.__qualname__} must take self as an argument")
        signature = inspect.signature(seen)
        first = 1 if is_module else 0
        if isinstance(concrete_args, tuple):
            if len(names[first:count]) != len(concrete_args):
                raise RuntimeError(
                    f"trace(): concrete_args must have {count - first} values, one for each "
                    f"argument; got {len(concrete_args)}"
                )
            concrete_args = dict(zip(names[first:count], concrete_args, strict=True))
        args = [self.root] if is_module else []
        for name in names[first:count]:
            args.append(self._proxy_placeholder(name, concrete_args, signature, seen))
        has_rest = code.co_flags & inspect.CO_VARARGS, code.co_flags & inspect.CO_VARKEYWORDS
        if code.co_kwonlyargcount or any(has_rest):
            rest = iter(names[count:])
            for star, has in zip(("*", "**"), has_rest, strict=True):
                if has:
                    name = f"{star}{next(rest)}"
                    args.append(self._proxy_placeholder(name, concrete_args, signature, seen))
            root_fn = _positional(seen, len(args))
        if concrete_args is None:
            return root_fn, args
        return self._with_leaves(root_fn, args, names[:count])

    def _with_leaves(self, root_fn, args, names):
        """A function of the leaves of nested arguments; the graph writes itself accordingly."""
        flat, spec = pytree.tree_flatten(tuple(args))
        if all(child.is_leaf() for child in spec.children()):
            return root_fn, args
        self.graph._codegen = _PyTreeCodeGen(_PyTreeInfo(names, spec, None))

        def of_leaves(*leaves):
            result = root_fn(*pytree.tree_unflatten(list(leaves), spec))
            outputs, out_spec = pytree.tree_flatten(result)
            codegen = self.graph._codegen
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return outputs

        return of_leaves, flat

    def _proxy_placeholder(self, name, concrete_args, signature, fn_for_analysis):
        if concrete_args is not None and name in concrete_args:
            return self._fixed(name, concrete_args[name], signature)
        if name.startswith("*"):
            default = ()
        else:
            parameter = signature.parameters[name]
            default = () if parameter.default is parameter.empty else (parameter.default,)
        annotation = _annotation(fn_for_analysis, name)
        return self.create_proxy("placeholder", name, default, {}, type_expr=annotation)

    def _fixed(self, name, value, signature):
        """An argument of `concrete_args`: its leaves are placeholders that are checked."""
        parameter = signature.parameters[name]
        default = () if parameter.default is parameter.empty else (parameter.default,)
        count = 0

        def leaf(x):
            nonlocal count
            count += 1
            node_name = f"{name}_{count}"
            if isinstance(x, PHWithMeta) and x.ph_key is not None:
                node_name = x.ph_key
            made = self.create_proxy("placeholder", node_name, default, {})
            if isinstance(x, PHBase):
                for key, attribute in vars(x).items():
                    if key != "ph_key":
                        setattr(made.node, key, attribute)
                return made
            return self._checked(made, name, x)

        return pytree.tree_map(leaf, value)

    def _checked(self, proxy, name, value):
        text = f"{name} was traced with the value {value}; got another"
        if value is None:
            args = (proxy, text)
            self.create_proxy("call_function", _assert_is_none, args, {})
        elif isinstance(value, base_types) and not isinstance(value, facula.Tensor):
            facula._assert(proxy == value, text)
        else:
            warnings.warn(
                f"symbolic_trace(): {name} cannot be fixed to a value of type "
                f"{type(value).__name__}; it stays an argument",
                stacklevel=2,
            )
            return proxy
        return value

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
        self._begin(root)
        is_module = isinstance(root, facula.nn.Module)
        function = getattr(type(root), self.traced_func_name) if is_module else root
        with _is_fx_tracing_context():
            called, args = self.create_args_for_root(function, is_module, concrete_args)
            with Patches() as patches:
                self._patch_modules(patches)
                patch_wrapped_functions(patches)
                self._wrap_globals(called, patches)
                for module in self._autowrap_search:
                    wrap_functions_of(vars(module), self._autowrap_function_ids, patches)
                annotation = _annotation(called, "return")
                result = (self.create_arg(called(*args)),)
                self.create_node("output", "output", result, {}, type_expr=annotation)
        self.submodule_paths = None
        return self.graph

    def _begin(self, root):
        is_module = isinstance(root, facula.nn.Module)
        if is_module:
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(
                    f"trace(): {type(root).__name__} must have a method {self.traced_func_name}"
                )
            self.root, self.root_module_name = root, root._get_name()
            self.submodule_paths = {}
            for name, module in root.named_modules():
                self.submodule_paths.setdefault(module, name)
        else:
            self.root = facula.nn.Module()
        self.graph = Graph(tracer_cls=type(self))
        self.num_calls, self.module_stack = {}, collections.OrderedDict()
        self.tensor_attrs = {}
        for path, module in self.root.named_modules():
            prefix = f"{path}." if path else ""
            for name, value in vars(module).items():
                if isinstance(value, facula.Tensor):
                    self.tensor_attrs[id(value)] = prefix + name, value

    def _patch_modules(self, patches):
        own_call, own_getattr = facula.nn.Module.__call__, facula.nn.Module.__getattr__
        cache = {}

        def call(module, *args, **kwargs):
            def forward(*args, **kwargs):
                return own_call(module, *args, **kwargs)

            self._wrap_globals(getattr(type(module), "forward", None), patches)
            return self.call_module(module, forward, args, kwargs)

        def get(module, name):
            return self.getattr(name, own_getattr(module, name), cache)

        patches.afterwards(facula.nn.modules.module._look_up_here_again)
        patches.attribute(facula.nn.Module, "__call__", call)
        patches.attribute(facula.nn.Module, "__getattr__", get)

    def _wrap_globals(self, function, patches):
        table = getattr(
            inspect.unwrap(function) if callable(function) else None, "__globals__", None
        )
        if table is not None:
            wrap_functions_of(table, self._autowrap_function_ids, patches)

    def __deepcopy__(self, memo):
        # The searched modules cannot be copied, and need not be.
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        for key, value in self.__dict__.items():
            kept = key in ("_autowrap_search", "root")
            made.__dict__[key] = value if kept else copy.deepcopy(value, memo)
        return made


def symbolic_trace(root, concrete_args=None):
    """A module written from the graph of another, or of a function.

    Args:
        root (Module | callable): what is traced.
        concrete_args (dict): values of arguments that are fixed; `PH` in nested ones marks leaves
            that stay arguments.

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
