"""Proxies: values that record into a graph what is done with them."""

from __future__ import annotations

import dis
import operator
import sys

import facula
from facula.fx.node import Node, map_aggregate

__all__ = ["Attribute", "GraphAppendingTracer", "Proxy", "TraceError", "TracerBase"]


class TraceError(ValueError):
    """The program asks for a value that is not known while it is traced."""


class TracerBase:
    """What proxies record with: makes nodes of calls, and proxies of nodes."""

    graph = None
    trace_asserts = False
    proxy_buffer_attributes = False

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        """Add a step to the graph; returns the Node."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node):
        """The proxy of a node."""
        return Proxy(node, self)

    def create_proxy(
        self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None
    ):
        """Record a call; returns the proxy of its result."""
        args, kwargs = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, args, kwargs, name, type_expr)
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def create_arg(self, a):
        """What a node keeps of an argument: nodes in the place of proxies."""
        return map_aggregate(a, self._leaf)

    def _leaf(self, a):
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, range):
            return range(*(self._leaf(part) for part in (a.start, a.stop, a.step)))
        known = (str, int, float, bool, complex, bytes, Node, type(None), type(...))
        facts = (facula.dtype, facula.device, facula.layout, facula.memory_format, facula.Tensor)
        if isinstance(a, known + facts) or callable(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj):
        """What `bool` of a proxy does; TraceError here."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj):
        """What iterating over a proxy does; TraceError but where it is unpacked."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a "
            "loop or as a *args or **kwargs function argument."
        )

    def keys(self, obj):
        """What `**proxy` asks for."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """A tracer that adds to a graph that is there."""

    def __init__(self, graph):
        super().__init__()
        self.graph = graph


def _unpacked_count(frame):
    """Into how many names the calling instruction unpacks, or None."""
    instructions = list(dis.get_instructions(frame.f_code))
    for instruction in instructions:
        if instruction.offset == frame.f_lasti and instruction.opname == "UNPACK_SEQUENCE":
            return instruction.argval
    return None


class Proxy:
    """A value while a program is traced: what is done with it becomes steps of the graph."""

    def __init__(self, node, tracer=None):
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self):
        return f"Proxy({self.node.name})"

    def __getattr__(self, name):
        if name in ("tracer", "node"):
            raise AttributeError(name)
        return Attribute(self, name)

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
            "'len' is not supported in symbolic tracing by default. If you want this call to be "
            "recorded, please call torch.fx.wrap('len') at module scope"
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
                tracers[id(a.tracer)] = a.tracer
            return a

        map_aggregate(args, find)
        map_aggregate(kwargs, find)
        if len(tracers) > 1:
            raise RuntimeError(f"{orig_method}: found proxies of different tracers")
        tracer = next(iter(tracers.values()))
        name = getattr(orig_method, "__name__", "")
        if getattr(facula.Tensor, name, None) is orig_method:
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs)


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


def _binary(function, reflected):
    def record(self, other):
        args = (other, self) if reflected else (self, other)
        return self.tracer.create_proxy("call_function", function, args, {})

    return record


def _unary(function):
    return lambda self: self.tracer.create_proxy("call_function", function, (self,), {})


for _name in "add sub mul truediv floordiv mod pow matmul lshift rshift and or xor".split():
    _function = getattr(operator, f"{_name}_" if _name in ("and", "or") else _name)
    setattr(Proxy, f"__{_name}__", _binary(_function, False))
    setattr(Proxy, f"__r{_name}__", _binary(_function, True))
for _name in "lt gt le ge eq ne getitem".split():
    setattr(Proxy, f"__{_name}__", _binary(getattr(operator, _name), False))
for _name in "neg pos invert".split():
    setattr(Proxy, f"__{_name}__", _unary(getattr(operator, _name)))
Proxy.__hash__ = object.__hash__
