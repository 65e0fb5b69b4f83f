"""How inputs of exported graphs are called, and how a node is described in a signature."""

from __future__ import annotations

import re

import facula
from facula.export.graph_signature import (
    ConstantArgument,
    InputKind,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)
from facula.utils import _pytree as pytree

_PREFIXES = {InputKind.PARAMETER: "p_", InputKind.BUFFER: "b_", InputKind.CONSTANT_TENSOR: "c_"}


def identifier(text):
    """A text as a name."""
    return re.sub(r"[^a-zA-Z0-9]", "_", text)


def of_lifted(kind, fqn):
    """The name of the input for a tensor of the module."""
    return (_PREFIXES[kind] + identifier(fqn)).lower()


def unused(name, taken):
    """A name that no input has, which it has from then on."""
    free, number = name, 0
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    taken.add(free)
    return free


def of_arguments(arguments):
    """A name for each leaf of a call's arguments.

    Args:
        arguments (dict): parameter to value.

    Returns:
        list[str]: `d_a_0` for `d["a"][0]`.
    """
    names = []
    for name, value in arguments.items():
        for path, _ in pytree.tree_leaves_with_path(value):
            parts = [name, *(identifier(_part(key)) for key in path)]
            names.append("_".join(part.strip("_") or part for part in parts).lower())
    return names


def _part(key):
    for attribute in ("idx", "key", "name"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


_SYMBOLIC = ((facula.SymInt, SymIntArgument), (facula.SymFloat, SymFloatArgument))


def argument_of(node, value):
    """The description of an input that is no tensor."""
    for cls, argument in (*_SYMBOLIC, (facula.SymBool, SymBoolArgument)):
        if isinstance(value, cls):
            return argument(node.target)
    return ConstantArgument(node.target, value)


def argument_of_value(tracer, value):
    """The description of a value while it is traced: that of its node, or a constant."""
    symbolic = isinstance(value, (facula.SymInt, facula.SymFloat, facula.SymBool))
    if not symbolic and not isinstance(value, facula.Tensor):
        return ConstantArgument("", value)
    node = getattr(tracer.unwrap_proxy(value), "node", None)
    if node is None:
        raise NotImplementedError(
            "export(): preserve_module_call_signature needs modules whose arguments and results "
            "are computed by the program; got a tensor from elsewhere"
        )
    for cls, argument in (*_SYMBOLIC, (facula.SymBool, SymBoolArgument)):
        if isinstance(value, cls):
            return argument(node.name)
    return TensorArgument(node.name)


def argument_of_output(node):
    """The description of a result."""
    value = node.meta.get("val")
    for cls, argument in (*_SYMBOLIC, (facula.SymBool, SymBoolArgument)):
        if isinstance(value, cls):
            return argument(node.name)
    return TensorArgument(node.name)
