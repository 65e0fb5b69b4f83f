"""Function transforms as one call of a graph: `vmap(f)(x)`, where all that `f` reads is known."""

from __future__ import annotations

import functools
import types

import facula

_PLAIN = (int, float, complex, str, bytes, type(None), facula.dtype, facula.device, facula.Size)
# Modules whose contents do not change.
_MODULES = frozenset(("facula", "torch", "math", "operator", "functools", "itertools", "numpy"))


class _Unknown(Exception):  # noqa: N818  (an answer)
    """A function reads what a graph would not know."""


class Whole:
    """A transformed function as the target of a graph's call.

    Two are equal if they do the same: made by one transform, with equal options, of functions with
    the same code that read the same.

    Args:
        name (str): of the transform.
        run (callable): the transformed function.
        content: all that it depends on, hashable.
    """

    def __init__(self, name, run, content):
        self.__name__ = self.__qualname__ = name
        self.__module__ = "facula.func"
        self._run, self._content = run, content

    def __call__(self, *args, **kwargs):
        return self._run(*args, **kwargs)

    def __eq__(self, other):
        return isinstance(other, Whole) and self._content == other._content

    def __hash__(self):
        return hash(self._content)


def whole(name, function, options, run):
    """The Whole of a transformed function.

    Args:
        name (str): of the transform.
        function (callable): what is transformed.
        options (tuple): of the transform.
        run (callable): the transformed function.

    Returns:
        Whole, or None where the function reads tensors or modules besides its arguments, or what
        may change.
    """
    try:
        content = name, _content(options, set()), _content(function, set())
        hash(content)
    except (_Unknown, TypeError):
        return None
    return Whole(name, run, content)


def _content(value, seen):
    """All that a value says to a function that reads it, hashable.

    Raises:
        _Unknown: it may be more than that.
    """
    if isinstance(value, facula.Tensor):
        raise _Unknown
    if isinstance(value, _PLAIN):
        return type(value), repr(value) if isinstance(value, float) else value
    if isinstance(value, (tuple, list)):
        return type(value), tuple(_content(part, seen) for part in value)
    if isinstance(value, dict):
        return dict, tuple((key, _content(part, seen)) for key, part in value.items())
    if isinstance(value, types.FunctionType):
        return _content_of_function(value, seen)
    if isinstance(value, functools.partial):
        return _content((value.func, value.args, value.keywords), seen)
    if isinstance(value, types.ModuleType):
        if value.__name__.partition(".")[0] not in _MODULES:
            raise _Unknown
        return value
    if isinstance(value, (types.BuiltinFunctionType, types.MethodDescriptorType, type)):
        return value
    if isinstance(value, (types.WrapperDescriptorType, facula._ops.OpOverload)):
        return value
    raise _Unknown


def _content_of_function(function, seen):
    if function.__module__ and function.__module__.partition(".")[0] == "facula":
        if not function.__closure__:
            return function  # it is ours, and reads what it is given
    elif function in seen:
        return function.__code__
    seen.add(function)
    code = function.__code__
    cells = tuple(_content(cell.cell_contents, seen) for cell in function.__closure__ or ())
    names = function.__globals__
    read = ()
    if function.__module__.partition(".")[0] != "facula":
        read = tuple(
            (name, _content(names[name], seen)) for name in _names_in(code) if name in names
        )
    return code, cells, read, _content((function.__defaults__, function.__kwdefaults__), seen)


def _names_in(code):
    """The names that a function and those within it may read."""
    found = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found += _names_in(constant)
    return found
