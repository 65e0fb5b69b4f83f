"""Which calls a function may make whose Python is to be skipped."""

from __future__ import annotations

import inspect
import math
import operator
import types
from collections import OrderedDict

import facula
from facula import _C, _tensor
from facula._dynamo.skip.values import (
    FACT,
    METHOD,
    OPERATOR,
    OVERLOAD,
    OVERLOAD_PACKET,
    VALUE,
    Missing,
    Refused,
    is_argument,
    is_simple,
    is_tensor,
    look_up,
    need_geometry,
    read_attribute,
    read_truth,
)
from facula.nn import Module
from facula.nn.modules import module as module_file

_OVERRIDABLE = type(facula.nn.functional.relu)
_OPERATORS = (_C._BuiltinFunction, _C._MethodDescriptor, OVERLOAD, OVERLOAD_PACKET)
_METHOD_TYPES = (types.MethodDescriptorType, types.WrapperDescriptorType)
_OBJECT_METHODS = (types.BuiltinFunctionType, types.MethodWrapperType)
# Methods of tensors that are no operators: those that tell what programs check, and casts.
_FACT_METHODS = frozenset(
    "size dim ndimension numel nelement element_size is_floating_point is_complex __len__".split()
)
_LAYOUT_METHODS = frozenset("stride is_contiguous".split())
_CASTS = frozenset(
    "float double half bfloat16 int long short char byte bool contiguous view_as type_as".split()
)
# Methods of tensors that are functions of the module _tensor.
_IN_PYTHON = frozenset("split norm nonzero unflatten unique type new_tensor".split())
# Methods of builtin classes that change nothing and give what follows from their arguments.
_PURE = {
    list: frozenset(("copy",)),
    dict: frozenset(("items", "keys", "values", "get", "copy")),
    OrderedDict: frozenset(("items", "keys", "values", "get")),
    tuple: frozenset(),
    str: frozenset("startswith endswith lower upper strip split join replace".split()),
    facula.Size: frozenset(("numel",)),
}
_CHANGING = {
    list: frozenset("append extend insert pop reverse clear".split()),
    dict: frozenset("update setdefault pop clear".split()),
}
_SIMPLE_FUNCTIONS = (min, max, abs, round, divmod, pow, sum, int, float, str, slice, range, complex)
_SIMPLE_FUNCTIONS += (operator.index, facula.device)
_WALKING = (tuple, list, enumerate, zip, reversed, iter, dict, any, all, sum, next)
_STATE_FUNCTIONS = (facula.is_grad_enabled, facula.is_inference_mode_enabled)


def root_function(reader, function):
    """The function of Python whose frame comes first when `function` is called."""
    if isinstance(function, types.FunctionType):
        return function
    if isinstance(function, types.MethodType) and isinstance(function.__func__, types.FunctionType):
        return function.__func__
    if isinstance(function, Module):
        return _forward_of(reader, function)
    raise Refused(f"it is a {type(function).__name__}")


def check_call(reader, frame, function, args, keywords):
    """Check a call; returns the check of what is on the stack after it, or None."""
    kind = type(function)
    if kind is types.MethodType:
        return check_call(reader, frame, function.__func__, [function.__self__, *args], keywords)
    if kind is types.FunctionType:
        return _python_function(reader, frame, function)
    if isinstance(function, Module):
        frame.expected = _forward_of(reader, function)
        return None
    if kind is _OVERRIDABLE:
        return _overridable(reader, frame, function, args, keywords)
    if kind in _OPERATORS:
        return _operator(reader, function, args, keywords)
    if kind in _METHOD_TYPES:
        return _method(reader, frame, function.__objclass__, function.__name__, args, keywords)
    if kind in _OBJECT_METHODS and not isinstance(function.__self__, types.ModuleType):
        owner = function.__self__
        return _method(reader, frame, type(owner), function.__name__, [owner, *args], keywords)
    return _function(reader, frame, function, args, keywords)


def _python_function(reader, frame, function):
    if not function.__code__.co_flags & inspect.CO_GENERATOR:
        frame.expected = function
        return None
    reader.check_function(function)
    return lambda after: reader.make_generator(after[-1])


# ---- modules


def _forward_of(reader, module):
    """Watch what a call of a module depends on; returns its forward()."""
    kind, program = type(module), reader.program
    plain = {"__call__": Module.__call__, "_call_impl": Module._call_impl}
    for name in ("__call__", "_call_impl", "_compiled_call_impl", "forward", "__dict__"):
        program.watch_name(kind, name)
        if name in plain and look_up(kind, name) is not plain[name]:
            raise Refused(f"{kind.__name__} has a {name} of its own")
    program.watch_instance(module)
    items = module.__dict__
    for name in ("_compiled_call_impl", "_call_impl", "forward"):
        program.watch_item(items, name)
        if items.get(name) is not None:
            raise Refused(f"a {kind.__name__} has a {name} of its own")
    for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"):
        program.watch_item(items, name)
        _refuse_hooks(program, items.get(name), f"a {kind.__name__} has hooks")
    for hooks in module_file._global_tables:
        _refuse_hooks(program, hooks, "there are hooks for all modules")
    forward = look_up(kind, "forward")
    if look_up(kind, "_compiled_call_impl") is not None or not isinstance(
        forward, types.FunctionType
    ):
        raise Refused(f"the forward of {kind.__name__} is no function")
    return forward


def _refuse_hooks(program, hooks, reason):
    if not isinstance(hooks, dict) or hooks:
        raise Refused(reason)
    program.watch_dict(hooks)


# ---- operators


def _check_arguments(args, keywords):
    for value in (*args, *keywords.values()):
        if not is_argument(value):
            raise Refused(f"an operator takes a {type(value).__name__}")
    for name in ("generator", "requires_grad", "pin_memory"):
        if keywords.get(name):
            raise Refused(f"an operator takes {name}")


def _operator(reader, function, args, keywords):
    name = function.__name__
    if name in _FACT_METHODS and args and is_tensor(args[0]):
        return _fact(reader, name, args, keywords)
    _check_arguments(args, keywords)
    return reader.calls_operator((*args, *keywords.values()))


def _overridable(reader, frame, function, args, keywords):
    _check_arguments(args, keywords)
    frame.expected = function.__wrapped__
    check = reader.calls_operator((*args, *keywords.values()))
    # A faster function stands in for some arguments, which does as operators do.
    return lambda after: None if frame.called else check(after)


def _fact(reader, name, args, keywords):
    if not all(is_simple(v) for v in (*args[1:], *keywords.values())):
        raise Refused(f"it calls Tensor.{name} with a tensor")
    need_geometry(reader, args[0])


# ---- methods of builtin classes


def _method(reader, frame, owner, name, args, keywords):
    if not args:
        raise Refused(f"it calls {owner.__name__}.{name} without an object")
    if is_tensor(args[0]):
        return _tensor_method(reader, frame, name, args, keywords)
    kind = type(args[0])
    if name in _CHANGING.get(kind, ()):
        if not reader.is_fresh(args[0]):
            raise Refused(f"it changes a {kind.__name__} that it did not make")
        for value in args[1:]:
            if name in ("extend", "update"):
                reader.walk(value)
        return None
    if name not in _PURE.get(kind, ()) or keywords:
        raise Refused(f"it calls {kind.__name__}.{name}")
    if isinstance(args[0], dict):
        return _dict_method(reader, name, args)
    if not all(is_simple(v) for v in args) and kind is not list:
        raise Refused(f"it calls {kind.__name__}.{name}")
    return lambda after: _note_fresh(reader, after[-1])


def _dict_method(reader, name, args):
    if name != "get":
        reader.walk_dict(args[0])
        return lambda after: _note_fresh(reader, after[-1])
    if not is_simple(args[1]):
        raise Refused("it calls dict.get with a key that is not simple")
    if reader.is_own(args[0]):
        return None
    reader.program.watch_item(args[0], args[1])
    found = args[1] in args[0]
    return (lambda after: reader.outside(after[-1])) if found else None


def _note_fresh(reader, value):
    if type(value) not in (tuple, str):
        reader.make_fresh(value)


def _tensor_method(reader, frame, name, args, keywords):
    if name in _IN_PYTHON:
        frame.expected = getattr(_tensor, name)
        return None
    if name in _FACT_METHODS:
        return _fact(reader, name, args, keywords)
    if name in _LAYOUT_METHODS:
        if reader.program.is_made(args[0]):
            raise Refused("it looks at the strides of a result")
        return _fact(reader, name, args, keywords)
    if name not in _CASTS:
        raise Refused(f"it calls Tensor.{name}")
    _check_arguments(args, keywords)
    return reader.calls_operator((*args, *keywords.values()))


# ---- functions


def _function(reader, frame, function, args, keywords):
    if function is isinstance:
        return _instance_check(reader, *args)
    if function is len:
        return _length(reader, frame, *args)
    if function is getattr:
        return _getattr(reader, frame, *args)
    if function is hasattr:
        return _hasattr(reader, *args)
    if function is super and not args:
        return _super(reader, frame)
    if function is bool and len(args) == 1:
        return read_truth(reader, args[0])
    if any(function is f for f in _STATE_FUNCTIONS) and not args:
        return None
    if function is _C._function and all(is_simple(v) for v in args):
        return None
    if any(function is f for f in _SIMPLE_FUNCTIONS) or _is_of_math(function):
        if all(is_simple(v) for v in (*args, *keywords.values())):
            return None
        if function in (min, max, sum, math.prod) and not keywords and _simple_lists(args):
            return None
    if any(function is f for f in _WALKING):
        return _walking(reader, frame, function, args, keywords)
    name = getattr(function, "__qualname__", type(function).__name__)
    raise Refused(f"it calls {name}()")


def _is_of_math(function):
    return type(function) is types.BuiltinFunctionType and function.__self__ is math


def _simple_lists(args):
    return all(is_simple(v) or (type(v) is list and all(is_simple(i) for i in v)) for v in args)


def _walking(reader, frame, function, args, keywords):
    for value in args:
        found = look_up(type(value), "__iter__")
        if type(value) is int and function is enumerate:
            continue
        if isinstance(found, types.FunctionType) and function in (tuple, list, enumerate, iter):
            reader.program.watch_instance(value)
            reader.program.watch_name(type(value), "__iter__")
            frame.expected, frame.walks = found, True
        else:
            reader.walk(value)
    frame.resumes = True
    if function in (any, all):
        frame.asks_truth = True
        for item in args[0] if type(args[0]) in (list, tuple) else ():
            read_truth(reader, item)
        if type(args[0]) not in (list, tuple) and not reader.is_own_generator(args[0]):
            raise Refused(f"it calls {function.__name__}() on a {type(args[0]).__name__}")
        return None
    if function in (sum, next):
        return _takes_item(reader, function, args)
    if function is dict:
        _refuse_pairs(args)
    elif set(keywords) - {"start", "strict"}:
        raise Refused(f"it calls {function.__name__}() with keywords")
    return lambda after: _note_fresh(reader, after[-1])


def _takes_item(reader, function, args):
    if len(args) != 1:
        raise Refused(f"it calls {function.__name__}() with {len(args)} arguments")
    for kind in (facula.Tensor, facula.nn.Parameter):
        reader.watch_operators(kind)

    def check(after):
        if is_tensor(after[-1]):
            reader.take_known(after[-1])
        elif function is sum and not is_simple(after[-1]):
            raise Refused(f"sum() gives a {type(after[-1]).__name__}")

    return check


def _refuse_pairs(args):
    for value in args:
        if type(value) is not dict:
            raise Refused("it calls dict() with pairs")


def _instance_check(reader, value, classes):
    listed = classes if type(classes) is tuple else (classes,)
    if not all(isinstance(c, type) for c in listed):
        raise Refused("it calls isinstance() with what is no class")
    metaclasses = {type(c) for c in listed} - {type, type(facula.Tensor)}
    if metaclasses and type(value) not in listed:
        raise Refused("it calls isinstance() with a class that has a rule of its own")
    if isinstance(value, Module) or not (is_tensor(value) or is_simple(value)):
        if type(value).__flags__ & 1 << 9:
            reader.program.watch_instance(value)
            reader.program.watch_name(type(value), "__class__")


def _length(reader, frame, value):
    kind = type(value)
    if is_tensor(value):
        return need_geometry(reader, value)
    if kind in (dict, OrderedDict):
        return reader.walk_dict(value)
    if kind in (tuple, list, str, range, facula.Size, *map(type, ({}.keys(), {}.values()))):
        return None
    found = look_up(kind, "__len__")
    if isinstance(found, types.FunctionType):
        reader.program.watch_instance(value)
        reader.program.watch_name(kind, "__len__")
        frame.expected = found
        return None
    raise Refused(f"it asks for the length of a {kind.__name__}")


def _getattr(reader, frame, owner, name, *default):
    if type(name) is not str:
        raise Refused("it calls getattr() with what is no text")
    try:
        found = read_attribute(reader, owner, name)
    except Missing:
        if default:
            return None
        raise
    if isinstance(found, types.FunctionType):
        frame.expected = found
    elif found == VALUE:
        return lambda after: reader.outside(after[-1])
    elif found == OPERATOR:
        return lambda after: reader.take_known(after[-1])
    elif found not in (FACT, METHOD):
        raise Refused("it calls getattr()")
    return None


def _hasattr(reader, owner, name):
    if type(name) is not str:
        raise Refused("it calls hasattr() with what is no text")
    try:
        if isinstance(read_attribute(reader, owner, name), types.FunctionType):
            raise Refused(f"it asks for a property {name} by hasattr()")
    except Missing:
        return None


def _super(reader, frame):
    cell = frame.function.__closure__[frame.code.co_freevars.index("__class__")]
    reader.program.watch_cell(cell)
