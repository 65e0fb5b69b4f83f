"""Marks that TorchScript's compiler would read; here they are set, and functions passed on."""

from __future__ import annotations

import types
import typing
from typing import Final

import facula

__all__ = ["FunctionModifiers", "Final", "export", "ignore", "is_scripting", "unused"]


class FunctionModifiers:
    """What a function's mark may say."""

    UNUSED = "unused (ignored and replaced with raising of an exception)"
    IGNORE = "ignore (leave as a call to Python, cannot be torch.jit.save'd)"
    EXPORT = "export (compile this function even if nothing calls it)"
    DEFAULT = "default (compile if called from a exported function / forward)"
    COPY_TO_SCRIPT_WRAPPER = (
        "if this method is not scripted, copy the python method onto the scripted model"
    )
    _DROP = "_drop (function is fully ignored, declaration can be unscriptable)"


def is_scripting():
    """Whether this runs inside of a TorchScript program: False.

    Example:
        >>> facula.jit.is_scripting()
        False
    """
    return False


def _marked(fn, mark):
    fn._torchscript_modifier = mark
    return fn


def export(fn):
    """Mark a method as one to compile even if nothing calls it; returns it."""
    return _marked(fn, FunctionModifiers.EXPORT)


def unused(fn):
    """Mark a function or property as one that compiled programs do not call; returns it.

    Example:
        >>> @facula.jit.unused
        ... def only_in_python(x):
        ...     return x
    """
    if not isinstance(fn, property):
        return _marked(fn, FunctionModifiers.UNUSED)
    for part in (fn.fget, fn.fset):
        if part is not None:
            _marked(part, FunctionModifiers.UNUSED)
    return fn


def ignore(drop=False, **kwargs):
    """Mark a function as one that stays a call of Python; a decorator with or without arguments.

    Args:
        drop (bool): mark it as `unused` does.
    """
    if callable(drop):
        return _marked(drop, FunctionModifiers.IGNORE)
    if not isinstance(drop, bool):
        raise RuntimeError(
            f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}"
        )
    mark = FunctionModifiers.UNUSED if drop else FunctionModifiers.IGNORE
    return lambda fn: _marked(fn, mark)


def _copy_to_script_wrapper(fn):
    return _marked(fn, FunctionModifiers.COPY_TO_SCRIPT_WRAPPER)


def _drop(fn):
    return _marked(fn, FunctionModifiers._DROP)


def get_torchscript_modifier(fn):
    """The mark of a function or method; that of functions without one is DEFAULT."""
    if not callable(fn):
        return None
    fn = getattr(fn, "__func__", fn)
    return getattr(fn, "_torchscript_modifier", FunctionModifiers.DEFAULT)


def is_ignored_fn(fn):
    """Whether a function is marked as one to leave out."""
    mark = get_torchscript_modifier(fn)
    return mark in (FunctionModifiers.UNUSED, FunctionModifiers.IGNORE, FunctionModifiers._DROP)


def should_drop(fn):
    """Whether a function is marked `unused`."""
    return get_torchscript_modifier(fn) == FunctionModifiers.UNUSED


_overloads: dict[str, list] = {}


def _qualified(fn):
    return f"{fn.__module__}.{fn.__qualname__}"


def _overload(func):
    """Note a declaration of an overloaded function; the last definition is what runs."""
    _overloads.setdefault(_qualified(func), []).append(func)
    return func


_overload_method = _overload


def _get_fn_overloads(qualified_name):
    return _overloads.get(qualified_name)


def boolean_dispatch(arg_name, arg_index, default, if_true, if_false, module_name, func_name):
    """A function that calls one of two, as an argument of it says."""

    def run(*args, **kwargs):
        chosen = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return if_true(*args, **kwargs) if chosen else if_false(*args, **kwargs)

    run.__doc__ = if_true.__doc__ or if_false.__doc__
    if module_name is not None:
        run.__module__ = module_name
    if func_name is not None:
        run.__name__ = func_name
    return run


def is_final(ann):
    """Whether an annotation is `Final[...]`."""
    return ann is Final or typing.get_origin(ann) is Final


# --- containers whose contents are looked at


def _is_instance(obj, target):
    origin, arguments = typing.get_origin(target), typing.get_args(target)
    if target is typing.Any:
        return True
    if target is None:
        return obj is None
    if origin in (typing.Union, types.UnionType):
        return any(_is_instance(obj, argument) for argument in arguments)
    bare = origin or {list: list, dict: dict, tuple: tuple}.get(target, target)
    if bare in (list, dict, tuple) and not arguments:
        raise RuntimeError(
            f"Attempted to use {bare.__name__} without a contained type. Please add a contained "
            f"type, e.g. {bare.__name__}[int]"
        )
    if bare is list:
        return isinstance(obj, list) and all(_is_instance(x, arguments[0]) for x in obj)
    if bare is dict:
        return isinstance(obj, dict) and all(
            _is_instance(k, arguments[0]) and _is_instance(v, arguments[1]) for k, v in obj.items()
        )
    if bare is tuple:
        return (
            isinstance(obj, tuple)
            and len(obj) == len(arguments)
            and all(map(_is_instance, obj, arguments))
        )
    if bare is facula.futures.Future:
        return isinstance(obj, bare)
    return isinstance(obj, target)


def _isinstance(obj, target_type):
    """`isinstance` for types with contents: `list[int]`, `dict[str, Tensor]`, unions.

    Args:
        target_type: a type, or a tuple of types.

    Raises:
        RuntimeError: `list`, `dict` or `tuple` without what they hold.

    Example:
        >>> facula.jit.isinstance([1, 2], list[int]), facula.jit.isinstance([1, "a"], list[int])
        (True, False)
    """
    targets = target_type if isinstance(target_type, tuple) else (target_type,)
    return any(_is_instance(obj, target) for target in targets)
