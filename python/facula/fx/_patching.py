"""What is other while a trace is made: functions that record their calls, patched in and out."""

from __future__ import annotations

import builtins
import functools
import sys

import facula
from facula.fx.node import map_aggregate
from facula.fx.proxy import Proxy

__all__ = ["Patches", "find_proxy", "patch_wrapped_functions", "recorded", "wrap"]

_wrapped_fns_to_patch = {}  # (id of globals, name) -> globals of functions that are recorded
_wrapped_methods_to_patch = []


class Patches:
    """Context manager: attributes and globals that are others for a while."""

    def __init__(self):
        self._undo, self._seen = [], set()

    def attribute(self, owner, name, value):
        """Set an attribute, once."""
        had, before = name in vars(owner), vars(owner).get(name)
        setattr(owner, name, value)
        self._undo.append(lambda: setattr(owner, name, before) if had else delattr(owner, name))

    def afterwards(self, action):
        """Call `action` once what is set from here on is put back."""
        self._undo.append(action)

    def item(self, table, name, value):
        """Set an item of a dict, once."""
        if (id(table), name) in self._seen:
            return
        self._seen.add((id(table), name))
        had, before = name in table, table.get(name)
        table[name] = value
        self._undo.append(lambda: table.__setitem__(name, before) if had else table.pop(name))

    def visit_once(self, thing):
        """Whether `thing` is seen for the first time."""
        is_new = id(thing) not in self._seen
        self._seen.add(id(thing))
        return is_new

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.revert()

    def revert(self):
        """Put everything back, the last change first."""
        while self._undo:
            self._undo.pop()()
        self._seen.clear()


def find_proxy(nest):
    """The first proxy in nested arguments, or None."""
    found = []
    map_aggregate(nest, lambda a: found.append(a) if isinstance(a, Proxy) else a)
    return found[0] if found else None


def recorded(function):
    """A function that records its call where an argument is a proxy."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        found = find_proxy((args, kwargs))
        if found is None:
            return function(*args, **kwargs)
        made = found.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return call


def patch_wrapped_functions(patches):
    """Let functions that were given to `wrap` record their calls."""
    for (_, name), table in _wrapped_fns_to_patch.items():
        if name in table:
            function = table[name]
        elif hasattr(builtins, name):
            function = getattr(builtins, name)
        else:
            continue
        patches.item(table, name, recorded(function))
    for owner, name in _wrapped_methods_to_patch:
        patches.attribute(owner, name, _recorded_method(owner, name))


def _recorded_method(owner, name):
    original = getattr(owner, name)

    @functools.wraps(original)
    def call(*args, **kwargs):
        found = find_proxy((args, kwargs))
        if found is None:
            return original(*args, **kwargs)
        return found.tracer.create_proxy("call_method", name, args, kwargs)

    return call


def wrap_functions_of(table, functions, patches):
    """Let those functions in a dict of globals that are wanted record their calls."""
    if not patches.visit_once(table):
        return
    for name, value in list(table.items()):
        if not name.startswith("_") and callable(value) and id(value) in functions:
            patches.item(table, name, recorded(value))


def wrap(fn_or_name):
    """Mark a function of the calling module: traces record its call and do not look into it.

    Args:
        fn_or_name (callable | str): a function, or its name in the module ("len").

    Returns:
        the argument, so that it serves as a decorator.

    Raises:
        RuntimeError: neither a function nor a name.
        AssertionError: a function without a name.
        NotImplementedError: not called at the top level of a module.

    Example:
        >>> @facula.fx.wrap  # doctest: +SKIP
        ... def clip(x, limit):
        ...     return x if limit is None else x.clamp(max=limit)
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            f"wrap(): fn_or_name must be a function or a name; got {type(fn_or_name).__name__}"
        )
    name = fn_or_name.__name__ if callable(fn_or_name) else fn_or_name
    if callable(fn_or_name) and isinstance(fn_or_name, Proxy):
        raise AssertionError("wrap(): fn_or_name must be a function; got a proxy")
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError(
            f"wrap(): must be called at the top level of a module; got {frame.f_code.co_name}()"
        )
    _wrapped_fns_to_patch[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


# Generated code calls it by the place where programs know it.
wrap.__module__ = f"{facula.__name__}.fx._symbolic_trace"
