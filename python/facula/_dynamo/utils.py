"""Questions that programs ask of a compiler, counters, and small helpers."""

from __future__ import annotations

from collections import Counter, defaultdict

import facula

# What was captured and why captures ended: group -> name -> count.
counters = defaultdict(Counter)


def is_compile_supported(device_type):
    """Whether functions are compiled for a kind of device: for the CPU.

    Example:
        >>> from facula._dynamo.utils import is_compile_supported
        >>> is_compile_supported("cpu")
        True
    """
    return str(device_type).partition(":")[0] == "cpu"


def count_calls(g):
    """The number of calls in a graph.

    Example:
        >>> module = facula.fx.symbolic_trace(lambda x: x.sin() + 1)
        >>> count_calls(module.graph)
        2
    """
    return sum("call" in node.op for node in g.nodes)


def istype(obj, allowed_types):
    """Whether an object's class is this one, or one of these; subclasses are not.

    Example:
        >>> istype(True, int), istype([], (list, tuple))
        (False, True)
    """
    if isinstance(allowed_types, (tuple, list, set)):
        return type(obj) in allowed_types
    return type(obj) is allowed_types


def istensor(obj):
    """Whether an object is a Tensor or Parameter, and of no other subclass."""
    return istype(obj, (facula.Tensor, facula.nn.Parameter))


def clone_input(x, *, dtype=None):
    """A copy of a tensor that requires grad as it does, with its strides and gradient."""
    with facula.no_grad():
        made = facula.empty_strided(x.size(), x.stride(), dtype=dtype or x.dtype, device=x.device)
        made.copy_(x)
    made.requires_grad_(x.requires_grad)
    if x.is_leaf and x.grad is not None:
        made.grad = clone_input(x.grad, dtype=dtype)
    return made


def clone_inputs(example_inputs):
    """Copies of the tensors in a list, tuple or dict of example inputs."""
    one = lambda x: clone_input(x) if isinstance(x, facula.Tensor) else x  # noqa: E731
    if isinstance(example_inputs, dict):
        return {name: one(value) for name, value in example_inputs.items()}
    return [one(value) for value in example_inputs]


def same(*args, **kwargs):
    """Whether two nests of tensors agree (`_dynamo.testing.same`)."""
    from facula._dynamo.testing import same as compare

    return compare(*args, **kwargs)
