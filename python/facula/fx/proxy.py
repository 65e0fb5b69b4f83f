"""Proxies: values that record into a graph what is done with them."""

from __future__ import annotations

import collections
import copy
import dataclasses
import dis
import inspect
import operator
import sys
import traceback
from typing import Any

import facula
from facula.fx import traceback as fx_traceback
from facula.fx.graph import Graph, magic_methods, reflectable_magic_methods
from facula.fx.node import Node, base_types, map_aggregate

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "Scope",
    "ScopeContextManager",
    "TraceError",
    "TracerBase",
]

_FOLDER = __file__.rpartition("proxy.py")[0]
# What steps recorded on behalf of another step take over from it.
_COPY_META_FIELDS = [
    "nn_module_stack",
    "torch_fn",
    "source_fn_stack",
    "original_aten",
    "recompute",
    "ac_graph_id",
    "has_backward_hook",
    "from_node",
    "quantization_tag",
    "_numeric_debug_handle",
    "custom",
    "partitioner_tag",
    "seq_nr",
]


class TraceError(ValueError):
    """The program asks for a value that is not known while it is traced."""


@dataclasses.dataclass
class Scope:
    """Which module's forward is being traced: its dotted name and its class."""

    module_path: str
    module_type: Any


class ScopeContextManager:
    """Context manager: lets a Scope be another's for a while.

    Args:
        scope (Scope): is changed.
        current_scope (Scope): what it becomes.
    """

    def __init__(self, scope, current_scope):
        self._scope, self._before = scope, copy.copy(scope)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type

    def __enter__(self):
        return self._scope

    def __exit__(self, *exception):
        before = self._before
        self._scope.module_path, self._scope.module_type = before.module_path, before.module_type


class TracerBase:
    """What proxies record with: makes nodes of calls, and proxies of nodes.

    Attributes:
        graph (Graph): what is recorded into.
        record_stack_traces (bool): whether nodes keep where they were recorded.
        check_mutable_operations (bool): whether operators that write to arguments are refused.
        trace_asserts (bool): whether asserts are recorded; they are not yet.
        proxy_buffer_attributes (bool): whether reading a buffer gives a proxy.
        traced_func_name (str): the method of a module that is traced.
    """

    graph: Graph
    record_stack_traces = False
    _record_forward_stack_traces_only = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"

    def __init__(self):
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.node_name_to_scope = {}

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        """Add a step to the graph; returns the Node.

        Raises:
            RuntimeError: `check_mutable_operations` is set and the step writes to an argument.
        """
        if kind == "call_function" and self.check_mutable_operations:
            from facula.fx.operator_schemas import check_for_mutable_operation

            check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        if hasattr(self, "scope"):
            self.node_name_to_scope[node.name] = self.scope.module_path, self.scope.module_type
        if fx_traceback.has_preserved_node_meta():
            self._take_current_meta(node)
        elif getattr(self, "module_stack", None):
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and not node.stack_trace:
            frames = self._filter_traceback_frames(traceback.extract_stack())
            if frames:
                node.stack_trace = "".join(frames.format()).strip()
        return node

    @staticmethod
    def _take_current_meta(node):
        current = fx_traceback.get_current_meta()
        if current.get("stack_trace"):
            node.stack_trace = current["stack_trace"]
        for key in _COPY_META_FIELDS:
            if key in current:
                node.meta[key] = copy.copy(current[key])

    def _filter_traceback_frames(self, user_stack_summary):
        """The frames of the program that is traced: from its first `forward`, without fx's own."""
        frames = list(user_stack_summary)
        first = next((i for i, f in enumerate(frames) if f.name == self.traced_func_name), None)
        if first is None:
            return traceback.StackSummary.from_list([])
        own = (_FOLDER, f"{facula.__path__[0]}/nn/modules/module.py")
        kept = [f for f in frames[first:] if not f.filename.startswith(own)]
        if self._record_forward_stack_traces_only:
            kept = [f for f in kept if f.name == self.traced_func_name]
        return traceback.StackSummary.from_list(kept)

    def proxy(self, node):
        """The proxy of a node."""
        return Proxy(node, self)

    def create_proxy(
        self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None
    ):
        """Record a call; returns the proxy of its result.

        Args:
            kind (str): the node's `op`.
            target: what is called.
            args (tuple), kwargs (dict): the arguments, with proxies.
            name (str): what the node is to be called.
            type_expr: the annotation of its value.
            proxy_factory_fn (callable): makes the proxy of the node.
        """
        args, kwargs = self.create_arg(args), self.create_arg(kwargs)
        if not isinstance(args, tuple) or not isinstance(kwargs, dict):
            raise AssertionError(
                f"create_proxy(): args must be a tuple and kwargs a dict; got "
                f"{type(args).__name__} and {type(kwargs).__name__}"
            )
        node = self.create_node(kind, target, args, kwargs, name, type_expr)
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def _find_user_frame(self):
        """The innermost frame that is not of fx."""
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith(_FOLDER):
            frame = frame.f_back
        return frame

    def create_arg(self, a):
        """What a node keeps of an argument: nodes in the place of proxies.

        Raises:
            NotImplementedError: the argument is of a class that nodes cannot hold.
            RuntimeError: a dict has a proxy as key.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            return self._tuple_arg(a)
        if isinstance(a, list):
            return [self.create_arg(item) for item in a]
        if isinstance(a, dict):
            return {self._key(key): self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(*(self.create_arg(part) for part in (a.start, a.stop, a.step)))
        if isinstance(a, range):
            return range(*(self.create_arg(part) for part in (a.start, a.stop, a.step)))
        if isinstance(a, (facula._C.OpOverload, Node)) or a is None or a is ...:
            return a
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            values = {f.name: self.create_arg(getattr(a, f.name)) for f in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), values)
        if isinstance(a, (*base_types, bytes)) or _is_enum(a):
            return a
        raise NotImplementedError(
            f"create_arg(): an argument must be a proxy, tensor, number, text, operator or a nest "
            f"of them; got {type(a).__name__}"
        )

    def _tuple_arg(self, a):
        items = [self.create_arg(item) for item in a]
        if hasattr(a, "_fields"):
            return type(a)(*items)
        return type(a)(items) if type(a) is not tuple and not _is_size(a) else tuple(items)

    def _key(self, key):
        def check(part):
            if isinstance(part, Node):
                raise RuntimeError(f"create_arg(): keys of dicts must be known; got {key}")
            return part

        key = self.create_arg(key)
        map_aggregate(key, check)
        return key

    def to_bool(self, obj):
        """What `bool` of a proxy does; TraceError here."""
        raise TraceError(
            f"bool of {obj.node}: its value must be known while tracing; control flow on traced "
            "values cannot be recorded"
        )

    def iter(self, obj):
        """What iterating over a proxy does; TraceError but where it is unpacked."""
        raise TraceError(
            f"{obj.node} cannot be iterated: its length must be known while tracing. Loops over it "
            "and f(*it), f(**it) need that"
        )

    def keys(self, obj):
        """What `**proxy` asks for."""
        return Attribute(obj, "keys")()


def _is_enum(a):
    import enum

    return isinstance(a, enum.Enum)


def _is_size(a):
    return isinstance(a, facula.Size)


class GraphAppendingTracer(TracerBase):
    """A tracer that adds to a graph that is there."""

    def __init__(self, graph):
        super().__init__()
        self.graph = graph


def _unpacked_count(frame):
    """Into how many names the calling instruction unpacks, or None."""
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset == frame.f_lasti:
            return instruction.argval if instruction.opname == "UNPACK_SEQUENCE" else None
    return None


class Proxy:
    """A value while a program is traced: what is done with it becomes steps of the graph.

    Args:
        node (Node): whose value it stands for.
        tracer (TracerBase): what records; adds to the node's graph if None.

    Example:
        >>> graph = facula.fx.Graph()
        >>> x = facula.fx.Proxy(graph.placeholder("x"))
        >>> y = facula.relu(x) + 1
        >>> [node.name for node in graph.nodes]
        ['x', 'relu', 'add']
    """

    def __init__(self, node, tracer=None):
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self):
        return f"Proxy({self.node.name})"

    def __getattr__(self, k):
        if k in ("tracer", "node") or k.startswith("__fx_"):
            raise AttributeError(k)
        return Attribute(self, k)

    def __getstate__(self):
        return self.__dict__

    def __setstate__(self, d):
        self.__dict__ = d

    def __deepcopy__(self, memo):
        # The tracer has the modules that are traced: they stay as they are.
        made = type(self).__new__(type(self))
        made.__dict__.update({k: v for k, v in self.__dict__.items() if k not in ("node", "_node")})
        made.__dict__.update({k: v for k, v in self.__dict__.items() if k in ("node", "_node")})
        return made

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self):
        count = _unpacked_count(sys._getframe(1))
        if count is not None:
            return iter([self[i] for i in range(count)])
        return self.tracer.iter(self)

    def __bool__(self):
        return self.tracer.to_bool(self)

    def __abs__(self):
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __len__(self):
        raise RuntimeError(
            f"len of {self.node} must be known while tracing; {facula.__name__}.fx.wrap('len') at "
            "the top of the module lets traces record the call"
        )

    def keys(self):
        """The keys, for `**proxy`."""
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(cls, orig_method, types, args=None, kwargs=None):
        args, kwargs = args or (), kwargs or {}
        tracers = {}

        def find(a):
            if isinstance(a, Proxy):
                tracers[a.tracer] = None
            return a

        map_aggregate(args, find)
        map_aggregate(kwargs, find)
        if len(tracers) > 1:
            raise RuntimeError(
                f"{orig_method.__name__}(): proxies must be of one tracer; got {len(tracers)}"
            )
        tracer = next(iter(tracers))
        if facula.overrides.is_tensor_method_or_property(orig_method):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        args, kwargs = _in_one_form(orig_method, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs)


def _in_one_form(function, args, kwargs):
    """The arguments of functions of `nn.functional`: optional ones by name, with their defaults."""
    if getattr(function, "__module__", None) != f"{facula.__name__}.nn.functional":
        return args, kwargs
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    required, optional = [], {}
    for name, parameter in bound.signature.parameters.items():
        if parameter.default is parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY:
            required.append(bound.arguments[name])
        else:
            optional[name] = bound.arguments[name]
    return tuple(required), optional


class Attribute(Proxy):
    """An attribute of a proxy: a step of its own only where it is not called at once."""

    def __init__(self, root, attr):
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node = None

    @property
    def node(self):
        """The step that reads the attribute."""
        if self._node is None:
            made = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {})
            self._node = made.node
        return self._node

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """The proxy of a parameter, whose sizes are known.

    Args:
        tracer (TracerBase): what records.
        node (Node): the reading of the parameter.
        name (str): its dotted name.
        param (Parameter): the parameter.
    """

    def __init__(self, tracer, node, name, param):
        super().__init__(node, tracer)
        if not isinstance(param, facula.nn.Parameter):
            got = type(param).__name__
            raise AssertionError(f"ParameterProxy: param must be a Parameter; got {got}")
        self.param, self.name = param, name

    def __repr__(self):
        return f"ParameterProxy({self.name})"

    @property
    def shape(self):
        """The parameter's sizes."""
        return self.param.shape

    @property
    def ndim(self):
        """The number of its dimensions."""
        return self.param.ndim

    def size(self):
        """Its sizes."""
        return self.param.size()

    def dim(self):
        """The number of its dimensions."""
        return self.param.dim()

    def numel(self):
        """The number of its elements."""
        return self.param.numel()

    def nelement(self):
        """The number of its elements."""
        return self.param.nelement()


class MetaProxy(Proxy):
    """The proxy of a value that a fake tensor describes.

    Args:
        node (Node): whose value it stands for.
        tracer (TracerBase): what records.
        fake_mode (FakeTensorMode): runs the calls on fake tensors; nodes get `meta["val"]`.
    """

    def __init__(self, node, tracer=None, fake_mode=None):
        super().__init__(node, tracer)
        self.fake_mode = fake_mode

    def __repr__(self):
        return f"MetaProxy({self.node.name})"

    @classmethod
    def __torch_function__(cls, orig_method, types, args=None, kwargs=None):
        args, kwargs = args or (), kwargs or {}
        first = next(a for a in args if isinstance(a, cls))

        def fake(a):
            return a.node.meta["val"] if isinstance(a, MetaProxy) else a

        made = super().__torch_function__(orig_method, types, args, kwargs)
        with first.fake_mode:
            value = orig_method(*map_aggregate(args, fake), **map_aggregate(kwargs, fake))
        made.node.meta["val"] = value
        return MetaProxy(made.node, first.tracer, first.fake_mode)


def _function_of(name):
    return getattr(operator, name, None) or getattr(operator, f"{name}_")


def _recorded(function, arity):
    def record(*args):
        # An argument may be of another tracer; the first proxy's records.
        tracer = next(a for a in args if isinstance(a, Proxy)).tracer
        return tracer.create_proxy("call_function", function, args[:arity], {})

    return record


def _reflected(function):
    return lambda self, other: self.tracer.create_proxy(
        "call_function", function, (other, self), {}
    )


for _name, _text in magic_methods.items():
    if _name == "div":
        continue
    setattr(Proxy, f"__{_name.strip('_')}__", _recorded(_function_of(_name), _text.count("{}")))
for _name in reflectable_magic_methods:
    if _name not in ("div", "getitem"):
        setattr(Proxy, f"__r{_name.strip('_')}__", _reflected(_function_of(_name)))
Proxy.__hash__ = object.__hash__
