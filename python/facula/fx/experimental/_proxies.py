"""What a trace by operators knows of tensors: the proxy that stands for each in the graph."""

from __future__ import annotations

import collections
import contextlib
import functools
import operator

import facula
from facula import _C
from facula._symbolic import SymBool, SymFloat, SymInt
from facula.fx.graph import Graph
from facula.fx.proxy import GraphAppendingTracer, Proxy, TracerBase
from facula.utils._pytree import tree_map
from facula.utils.weak import TensorWeakRef, WeakTensorKeyDictionary


class _NoDefault:
    pass


no_default = _NoDefault()


# --- which proxy a tensor has


class _ProxyTensor:
    """The proxy of a tensor, and its value where that is a constant of the program."""

    __slots__ = ("constant", "proxy")

    def __init__(self, proxy, constant):
        self.proxy, self.constant = proxy, constant


def _memory_key(t):
    """What tells a tensor from others that have a header of their own."""
    try:
        storage = t.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):
        return None
    return storage, t.storage_offset(), tuple(t.shape), t.stride(), t.dtype, t.is_conj(), t.is_neg()


class _TensorTracker:
    """What stands for tensors: by object, or for another header by the memory and geometry of a
    tensor that is alive."""

    def __init__(self):
        self._by_object, self._by_memory, self._by_storage = WeakTensorKeyDictionary(), {}, {}
        # What a custom function's backward returns goes on under another header, when nothing else
        # holds the first one any more.
        self._recent = collections.deque(maxlen=64)

    def __setitem__(self, tensor, value):
        self._by_object[tensor] = value
        self._recent.append(tensor)
        key = _memory_key(tensor)
        if key is not None and self._living(key) is None:
            self._by_memory[key] = TensorWeakRef(tensor)
        if key is not None:
            self._by_storage[key[0]] = TensorWeakRef(tensor)

    def _living(self, key):
        """The first tensor that was met with this memory and geometry, if it has them still."""
        known = self._by_memory[key]() if key in self._by_memory else None
        # The memory may be another's by now, where the tensor has changed or is gone.
        return None if known is None or _memory_key(known) != key else known

    def __contains__(self, tensor):
        return self.get(tensor) is not None

    def __getitem__(self, tensor):
        found = self.get(tensor)
        if found is None:
            raise KeyError(tensor)
        return found

    def get(self, tensor, default=None):
        """What is known of a tensor, or `default`."""
        found = self._by_object.get(tensor)
        if found is not None:
            return found
        known = self._living(_memory_key(tensor))
        return default if known is None else self._by_object.get(known, default)

    def over_storage(self, tensor):
        """What is known of a tensor that lies over the same storage, or None."""
        key = _memory_key(tensor)
        known = self._by_storage[key[0]]() if key and key[0] in self._by_storage else None
        if known is None or _memory_key(known)[0] != key[0]:
            return None
        return self._by_object.get(known)


def get_proxy_slot(obj, tracer, default=no_default, transform=lambda x: x):
    """What a tracer knows of a tensor.

    Args:
        obj (Tensor): what was met.
        tracer (PythonKeyTracer): has the proxies.
        default: is returned for a tensor that it does not know.
        transform (callable): is called with what is known.

    Raises:
        KeyError: the tensor is not known, and there is no default.
    """
    found = tracer.tensor_tracker.get(obj)
    if found is not None:
        return transform(found)
    if default is no_default:
        raise KeyError("get_proxy_slot(): expected a tensor of this trace; got another one")
    return default


def has_proxy_slot(obj, tracer):
    """Whether a tracer has a proxy of a tensor."""
    return get_proxy_slot(obj, tracer, None) is not None


def set_proxy_slot(obj, tracer, proxy):
    """Let a tracer know a tensor by what stands for it in the graph."""
    tracer.tensor_tracker[obj] = proxy


def _has_proxy(value, tracer):
    return isinstance(value, facula.Tensor) and has_proxy_slot(value, tracer)


def fetch_object_proxy(tracer, t):
    """The proxy of a tensor, or the tensor itself where there is none."""
    return get_proxy_slot(t, tracer, t)


def extract_val(val, include_real=False):
    """What a node's meta keeps of a value: fake tensors in the place of tensors."""
    if isinstance(val, facula.Tensor):
        return snapshot_fake(val)
    if isinstance(val, (list, tuple)):
        return type(val)(map(extract_val, val)) if type(val) in (list, tuple) else list(val)
    if isinstance(val, dict):
        return {key: extract_val(one) for key, one in val.items()}
    if isinstance(val, (str, int, float, bool, complex, type(None), SymInt, SymFloat, SymBool)):
        return val
    return None


def snapshot_fake(val, include_real=False):
    """A fake tensor with the shape, strides, dtype and device that a tensor has now."""
    if val.layout is not facula.strided:
        return None
    with _no_modes():
        return _C._make_fake(
            facula.empty_strided(val.shape, val.stride(), dtype=val.dtype, device="meta")
            if _C._is_fake(val) and val.device.type == "meta"
            else val
        )


_ABOVE_KERNELS = ("Modes", "Autograd", "PreAutogradTrace", "Transforms", "Autocast")


@functools.lru_cache(None)
def _bits_above_kernels():
    names = [name for name, _ in reversed(_C._layers())]
    return sum(1 << bit for bit, name in enumerate(names) if name in _ABOVE_KERNELS)


@contextlib.contextmanager
def _no_modes():
    """Context manager: calls pass this thread's modes by, and autograd."""
    before = _C._set_excluded_layers(0)
    _C._set_excluded_layers(before | _bits_above_kernels())
    try:
        yield
    finally:
        _C._set_excluded_layers(before)


def set_meta(proxy, val):
    """Note a value's fake copy in the node of its proxy; returns the proxy."""
    proxy.node.meta["val"] = extract_val(val)
    if isinstance(val, facula.Tensor):
        proxy.node.meta["tensor_meta"] = _tensor_meta(val)
    return proxy


def _tensor_meta(val):
    try:
        from facula.fx.passes.shape_prop import _extract_tensor_metadata
    except ImportError:
        return None
    return _extract_tensor_metadata(val)


def track_tensor(tensor, proxy, *, constant, tracer):
    """Let a proxy stand for a tensor, whose value is `constant` where it is known."""
    set_proxy_slot(tensor, tracer, _ProxyTensor(proxy, constant))


def track_tensor_tree(inner_res, proxy_res, *, constant, tracer):
    """Let a call's proxy stand for its results; those of a list get nodes that pick them.

    Args:
        inner_res (Tensor | nest): what the call gave.
        proxy_res (Proxy | nest): what stands for it.
        constant (Tensor | nest | None): the values, where they are constants.
        tracer (PythonKeyTracer): takes them.

    Returns:
        `inner_res`
    """
    _track(inner_res, proxy_res, constant, tracer)
    return inner_res


def _track(value, proxy, constant, tracer):
    if isinstance(value, facula.Tensor):
        if isinstance(proxy, Proxy):
            set_meta(proxy, value)
        track_tensor(value, proxy, constant=constant, tracer=tracer)
    elif isinstance(value, dict):
        for key, one in value.items():
            _track(one, proxy[key], None if constant is None else constant[key], tracer)
    elif isinstance(value, (list, tuple)):
        if isinstance(proxy, Proxy):
            set_meta(proxy, value)
        for i, one in enumerate(value):
            _track(one, _item(proxy, i), None if constant is None else constant[i], tracer)
    elif isinstance(proxy, Proxy):
        set_meta(proxy, value)


def _item(proxy, i):
    if not isinstance(proxy, Proxy):
        return proxy[i]
    return proxy.tracer.create_proxy("call_function", operator.getitem, (proxy, i), {})


# --- tracers


class PythonKeyTracer(TracerBase):
    """Makes the nodes of a trace by operators; tensors that it does not know become attributes."""

    def __init__(self, *, autowrap_modules=()):
        super().__init__()
        self.graph = Graph(tracer_cls=type(self))
        self.root = facula.nn.Module()
        self.tensor_tracker = _TensorTracker()
        self._attributes = []  # (name, tensor)
        self.names_operands = False  # in graphs of functions, as the nodes that are given
        self.decomp_layers = 0
        self.numbers = None  # what stands for numbers from data (_unbacked.py)

    def create_arg(self, a):
        """What a node keeps of an argument."""
        return tree_map(self._argument, a)

    def _argument(self, a):
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, _ProxyTensor):
            return a.proxy.node
        if isinstance(a, facula.Tensor):
            kind = "_param" if isinstance(a, facula.nn.Parameter) else "_tensor"
            node = self.create_node("get_attr", self._attribute_name(a, kind), (), {})
            node.meta["val"] = extract_val(a)
            return node
        return super().create_arg(a)

    def _attribute_name(self, tensor, kind):
        for name, known in self._attributes:
            if known is tensor:
                return name
        number = sum(name.startswith(f"{kind}_constant") for name, _ in self._attributes)
        name = f"{kind}_constant{number}"
        self._attributes.append((name, tensor))
        if isinstance(tensor, facula.nn.Parameter):
            self.root.register_parameter(name, tensor)
        else:
            setattr(self.root, name, tensor)
        return name

    def unwrap_proxy(self, e):
        """The proxy of a tensor that is known; what else is given, as it is."""
        if isinstance(e, facula.Tensor):
            return get_proxy_slot(e, self, e, lambda known: known.proxy)
        return e

    def output(self, result):
        """End the graph with the nodes of what a function returned."""
        return self.create_node("output", "output", (self.create_arg(result),), {})


class _GraphAppendingTracerEx(GraphAppendingTracer):
    """Knows the tensors of a graph that is written anew from another."""

    def __init__(self, graph):
        super().__init__(graph)
        self.tensor_tracker = _TensorTracker()
        self.decomp_layers, self.numbers = 0, None

    def unwrap_proxy(self, e):
        """The proxy of a tensor that is known; what else is given, as it is."""
        if isinstance(e, facula.Tensor):
            return get_proxy_slot(e, self, e, lambda known: known.proxy)
        return e
