"""How a call reads in a graph: the overload and the arguments that PyTorch's graphs have."""

from __future__ import annotations

import facula

# Operators whose overload for tensors stands in graphs also where a number is given: a number in
# Python is a tensor to them.
_NUMBERS_ARE_TENSORS = frozenset(("add", "sub", "mul", "div", "floor_divide"))


def _is_number(value):
    return isinstance(value, (bool, int, float, complex))


def _takes_tensor(argument):
    return str(argument.type) == "Tensor"


def _numbers_for_tensors(func, args):
    """The positions of numbers that stand where the schema has a tensor."""
    arguments = func._schema.arguments
    return [
        i
        for i, (value, argument) in enumerate(zip(args, arguments, strict=False))
        if _is_number(value) and _takes_tensor(argument)
    ]


def _overload_for_numbers(func, numbers):
    """The overload of an operator that takes numbers exactly at these positions."""
    packet = getattr(facula.ops.aten, func.overloadpacket.__name__)
    wanted = [_takes_tensor(a) and i not in numbers for i, a in enumerate(func._schema.arguments)]
    for name in packet.overloads():
        overload = getattr(packet, name)
        arguments = overload._schema.arguments
        if len(arguments) <= len(wanted) and not any(a.name == "out" for a in arguments):
            takes = [_takes_tensor(a) for a in arguments]
            if takes == wanted[: len(takes)] and len(takes) > max(numbers):
                return overload
    return func


def _factory_options(func, kwargs):
    """A factory's arguments with the device and the pinning that the Python function fills in."""
    names = {argument.name for argument in func._schema.arguments}
    if "pin_memory" not in names or "layout" in kwargs:
        return kwargs
    name = func.overloadpacket.__name__
    takes_tensor = any("Tensor" in str(a.type) for a in func._schema.arguments if not a.kwarg_only)
    if takes_tensor and not name.startswith("new_") and not name.endswith("_like"):
        return kwargs
    filled = dict(kwargs)
    order = ["dtype", "layout", "device", "pin_memory"]
    if not takes_tensor:
        filled.setdefault("device", facula.get_default_device())
    filled.setdefault("pin_memory", False)
    known = {name: filled[name] for name in order if name in filled}
    return known | {name: value for name, value in filled.items() if name not in known}


def _without_cudnn(func, args):
    """The arguments with False for the question whether cuDNN may be used: it is not there."""
    arguments = func._schema.arguments
    where = [i for i, a in enumerate(arguments) if a.name in ("cudnn_enable", "cudnn_enabled")]
    if not where:
        return args
    filled = list(args) + [a.default_value for a in arguments[len(args) : where[0] + 1]]
    filled[where[0]] = False
    return tuple(filled)


def as_recorded(func, args, kwargs, detach_is_alias=True):
    """The call as a graph has it.

    Args:
        func (OpOverload): the operator that facula calls.
        args (tuple), kwargs (dict): its arguments.
        detach_is_alias (bool): whether `detach` stands in the graph as `alias`.

    Returns:
        tuple: the OpOverload, args and kwargs.
    """
    if func.namespace != "aten":
        return func, args, kwargs
    if func is facula.ops.aten.detach.default and detach_is_alias:
        return facula.ops.aten.alias.default, args, kwargs
    name = func.overloadpacket.__name__
    if name.endswith("_norm"):
        args = _without_cudnn(func, args)
    if name == "to" and list(kwargs) == ["dtype"]:
        return facula.ops.aten.to.dtype, (*args, kwargs["dtype"]), {}
    numbers = _numbers_for_tensors(func, args)
    if numbers and name.rstrip("_") not in _NUMBERS_ARE_TENSORS:
        return _overload_for_numbers(func, numbers), args, kwargs
    return func, args, _factory_options(func, kwargs)
