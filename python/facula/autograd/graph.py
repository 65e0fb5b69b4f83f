"""The graph that backward runs: its nodes, edges, saved tensors and hooks."""

from __future__ import annotations

import contextlib
import functools
import threading
import types
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from facula import _C, _capture
from facula.autograd.grad_mode import no_grad

__all__ = [
    "saved_tensors_hooks",
    "save_on_cpu",
    "disable_saved_tensors_hooks",
    "register_multi_grad_hook",
    "allow_mutation_on_saved_tensors",
    "Node",
    "GradientEdge",
    "get_gradient_edge",
    "increment_version",
    "queue_callback",
    "node_creation_hook",
    "region_activation_memory_budget",
]

_Tensor = _C.Tensor
Node = _C._Node


class GradientEdge(NamedTuple):
    """A place in the graph: the gradient of output `output_nr` of `node`."""

    node: Node
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor):
    """The edge where the gradient of `tensor` (Tensor) arrives.

    Returns:
        GradientEdge: to give to :func:`facula.autograd.grad` in place of the tensor.

    Raises:
        RuntimeError: the tensor requires no gradient.
    """
    if not tensor.requires_grad:
        raise RuntimeError("get_gradient_edge(): expected a tensor that requires grad")
    return GradientEdge(_gradient_function(tensor), tensor.output_nr)


def _gradient_function(tensor):
    if tensor.grad_fn is not None:
        return tensor.grad_fn
    import facula

    with facula.enable_grad():
        return tensor.view_as(tensor).grad_fn.next_functions[0][0]


def increment_version(tensor):
    """Count a change of `tensor` (Tensor or iterable of Tensors) that autograd could not see."""
    if not isinstance(tensor, Iterable):
        raise RuntimeError(
            f"increment_version(): expected a Tensor or Tensors; got {type(tensor).__name__}"
        )
    _C._increment_version((tensor,) if isinstance(tensor, _Tensor) else tuple(tensor))


def queue_callback(callback):
    """Run `callback()` when the backward pass that runs now has finished.

    Raises:
        RuntimeError: no backward pass runs on this thread.
    """
    _C._queue_callback(callback)


@contextlib.contextmanager
def node_creation_hook(hook):
    """Context manager: `hook(node)` sees every node of the graph that this thread makes.

    A node is shown once, with its edges, outputs and saved tensors in place; the node of a leaf
    when it is made, not when it is used again. Hooks of outer contexts come first. Threads that
    run backward inside of the context call the hook as well.

    Args:
        hook (callable): takes a :class:`Node`; what it returns is ignored. It may keep the node,
            fill its `metadata` and register hooks on it.

    Raises:
        TypeError: hook cannot be called.
        RuntimeError: in the operation whose node is shown, when the hook makes a node itself.

    Example:
        >>> x = facula.ones(5, requires_grad=True)
        >>> with facula.autograd.graph.node_creation_hook(lambda node: print(node.name())):
        ...     y = x * 2
        torch::autograd::AccumulateGrad
        MulBackward0
    """
    _C._push_node_creation_hook(hook)
    try:
        yield
    finally:
        _C._pop_node_creation_hook()


class saved_tensors_hooks:
    """Context manager: tensors saved for backward pass through a pair of functions.

    Args:
        pack_hook (callable): takes the tensor that is saved, returns anything.
        unpack_hook (callable): takes what pack_hook returned, gives the tensor back.

    Example:
        >>> def pack(x):
        ...     print("saved", x.shape)
        ...     return x
        >>> with facula.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        ...     y = facula.ones(2, requires_grad=True).exp()
        saved facula.Size([2])
    """

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self):
        _capture.finish("saved_tensors_hooks")
        _C._push_saved_tensors_default_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exception):
        _capture.finish("saved_tensors_hooks")
        _C._pop_saved_tensors_default_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Context manager: tensors saved for backward wait in the CPU's memory.

    Args:
        pin_memory (bool): keep them in pinned memory, where `device_type` has it.
        device_type (str): the accelerator that tensors come from.
    """

    def __init__(self, pin_memory=False, device_type="cuda"):
        def pack_to_cpu(tensor):
            if not pin_memory:
                return tensor.device, tensor.cpu()
            import facula

            packed = facula.empty(
                tensor.size(),
                dtype=tensor.dtype,
                layout=tensor.layout,
                pin_memory=getattr(facula, device_type).is_available(),
            )
            packed.copy_(tensor)
            return tensor.device, packed

        def unpack_from_cpu(packed):
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack_to_cpu, unpack_from_cpu)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message):
    """Context manager and decorator: using hooks of saved tensors raises `error_message` (str)."""
    before = _C._disable_saved_tensors_hooks(error_message)
    try:
        yield
    finally:
        _C._disable_saved_tensors_hooks(before)


def region_activation_memory_budget(budget):
    """Bound the memory of activations in a compiled region.

    Args:
        budget (float): the share of the memory that may stay, in [0, 1].

    Raises:
        TypeError, ValueError: budget is no number in [0, 1].
        RuntimeError: outside of a compiled region, where nothing chooses what to keep; `checkpoint`
            does that for eager code.
    """
    name = "region_activation_memory_budget()"
    if not isinstance(budget, (int, float)):
        raise TypeError(f"{name}: budget must be a number; got {type(budget).__name__}")
    if not 0 <= budget <= 1:
        raise ValueError(f"{name}: budget must be in [0, 1]; got {budget}")
    raise RuntimeError(f"{name}: works in a compiled region only; this code runs eagerly")


class _MultiHandle:
    """Removes the hooks that stand for one."""

    def __init__(self, handles):
        self.handles = handles

    def remove(self):
        """Remove the hooks."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.remove()


def register_multi_grad_hook(tensors, fn, *, mode: Literal["all", "any"] = "all"):
    """Run a function when gradients of several tensors have been computed.

    Args:
        tensors (sequence of Tensors): each requires grad.
        fn (callable): in mode "all" takes the list of gradients (None for tensors that the pass
            does not reach) when the last has come; in mode "any" the first gradient alone.
        mode (str): "all" or "any".

    Returns:
        a handle with a method `remove()`.

    Raises:
        ValueError: another mode.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook(): mode must be 'all' or 'any'; got {mode!r}")
    tensors = tuple(tensors)
    nodes = []
    for tensor in tensors:
        if not tensor.requires_grad:
            raise AssertionError("register_multi_grad_hook(): expected tensors that require grad")
        nodes.append(_gradient_function(tensor))
    make = _all_hooks if mode == "all" else _any_hooks
    hooks = make(nodes, fn)
    return _MultiHandle([t.register_hook(hook) for t, hook in zip(tensors, hooks, strict=True)])


def _all_hooks(nodes, fn):
    lock = threading.Lock()
    arrived, grads, expected = defaultdict(int), {}, {}

    def hook(index, grad):
        number = _C._current_graph_task_id()
        if number == -1:
            raise AssertionError("this hook runs only in a backward pass")
        with lock:
            if number not in grads:
                grads[number] = [None] * len(nodes)
                expected[number] = sum(map(_C._will_engine_execute_node, nodes))
            arrived[number] += 1
            grads[number][index] = grad
            complete = arrived[number] == expected[number]
            if complete:
                del arrived[number], expected[number]
                collected = grads.pop(number)
        if complete:
            fn(collected)

    return [functools.partial(hook, index) for index in range(len(nodes))]


def _any_hooks(nodes, fn):
    lock = threading.Lock()
    seen = set()

    def hook(grad):
        number = _C._current_graph_task_id()
        if number == -1:
            raise AssertionError("this hook runs only in a backward pass")
        with lock:
            if number in seen:
                return
            seen.add(number)
        fn(grad)

    return [hook] * len(nodes)


# --- tensors that may be changed after they were saved


class _CloneContext:
    """What allow_mutation_on_saved_tensors knows: copies of what was changed, by its key."""

    def __init__(self):
        self.clear()

    def clear(self):
        """Forget all copies."""
        self.cloned = {}
        self.originals = {}
        self.keys_of_storage = defaultdict(set)


class _Key:
    """Stands for a saved tensor in the state that it had."""


_mutation = threading.local()


@contextlib.contextmanager
def allow_mutation_on_saved_tensors():
    """Context manager: tensors may be changed in place after they were saved for backward.

    A tensor is copied just before its first change. Backward must run inside of the context.

    Example:
        >>> with facula.autograd.graph.allow_mutation_on_saved_tensors():
        ...     a = facula.ones(2, requires_grad=True)
        ...     b = a.clone()
        ...     out = (b ** 2).sum()
        ...     _ = b.sin_()
        ...     out.backward()
        >>> a.grad
        tensor([2., 2.])
    """
    if getattr(_mutation, "context", None) is not None:
        raise RuntimeError("allow_mutation_on_saved_tensors(): the contexts do not nest")
    context = _CloneContext()
    pack, unpack = _mutation_hooks(context)
    with saved_tensors_hooks(pack, unpack), _watcher(context):
        _mutation.context = context
        try:
            yield context
        finally:
            context.clear()
            _mutation.context = None


def _mutation_hooks(context):
    def pack(tensor):
        key = _Key()
        # A header of its own over the same memory: the tensor may be changed, or die.
        with no_grad():
            context.originals[key] = tensor.detach()
        context.keys_of_storage[tensor.untyped_storage()._cdata].add(key)
        return key

    def unpack(key):
        if getattr(_mutation, "context", None) is not context or (
            key not in context.originals and key not in context.cloned
        ):
            raise AssertionError(
                "backward must run inside of the allow_mutation_on_saved_tensors() in which the "
                "graph was recorded"
            )
        return context.cloned[key] if key in context.cloned else context.originals[key]

    return pack, unpack


def _watcher(context):
    from facula.utils._python_dispatch import TorchDispatchMode

    class CopyBeforeWrite(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            for tensor in _written(func, args, kwargs):
                self.save(tensor)
            return func(*args, **kwargs)

        @staticmethod
        def save(tensor):
            for key in context.keys_of_storage.pop(tensor.untyped_storage()._cdata, ()):
                original = context.originals.pop(key, None)
                if original is not None:
                    context.cloned[key] = original.clone()

    return CopyBeforeWrite()


def _written(func, args, kwargs):
    """The tensors that a call of an operator changes, by its schema."""
    for i, argument in enumerate(func._schema.arguments):
        info = argument.alias_info
        if info is None or not info.is_write:
            continue
        value = args[i] if i < len(args) else kwargs.get(argument.name)
        yield from (
            (value if isinstance(value, (list, tuple)) else (value,)) if value is not None else ()
        )


def _input_metadata(shape, dtype, device):
    import facula

    return types.SimpleNamespace(
        shape=facula.Size(shape),
        dtype=dtype,
        device=device,
        is_nested_tensor=False,
        is_cpp_nested_tensor=False,
    )
