"""Modules of flags: attributes of fixed types, `set_flags`, and `flags` as a context manager."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from types import ModuleType

from facula import backends


class _FlagModule(ModuleType):
    def __setattr__(self, name, value):
        if name in self.__dict__["_flag_names"] and backends.flags_frozen():
            raise RuntimeError(
                f"not allowed to set {self.__name__} flags after disable_global_flags; please use "
                "flags() context manager instead"
            )
        kind = self.__dict__["_flag_types"].get(name)
        if kind is not None and not isinstance(value, kind):
            raise RuntimeError(
                f"set_{name}_{self.__name__.rpartition('.')[2]} expects a {kind.__name__}, but got "
                f"{type(value).__name__}"
            )
        super().__setattr__(name, value)


def install(module_name, flags, within):
    """Give a module flags, and the functions that set them.

    Args:
        module_name (str): the name in `sys.modules`.
        flags (dict): names and first values. Values of another type than bool or int are free.
        within (dict): what `flags()` sets them to, where it is not told.
    """
    module = sys.modules[module_name]
    names = tuple(flags)
    kinds = {name: type(value) for name, value in flags.items() if type(value) in (bool, int)}

    def set_flags(*args, **kwargs):
        """Set flags that are given and not None; returns what all were before, as a tuple."""
        given = dict(zip(names, args, strict=False))
        given.update({name.removeprefix("_"): value for name, value in kwargs.items()})
        unknown = set(given) - set(names)
        if unknown or len(args) > len(names):
            raise TypeError(f"set_flags(): expected {names}; got {sorted(unknown) or args}")
        before = tuple(getattr(module, name) for name in names)
        with backends.__allow_nonbracketed_mutation():
            for name, value in given.items():
                if value is not None:
                    setattr(module, name, value)
        return before

    @contextmanager
    def flags_within(*args, **kwargs):
        """Context manager: flags within, put back on the way out."""
        given = dict(zip(names, args, strict=False), **kwargs)
        before = set_flags(**{f"_{name}": value for name, value in {**within, **given}.items()})
        try:
            yield
        finally:
            with backends.__allow_nonbracketed_mutation():
                for name, value in zip(names, before, strict=True):
                    setattr(module, name, value)

    module.__dict__.update(
        flags, _flag_names=names, _flag_types=kinds, set_flags=set_flags, flags=flags_within
    )
    module.__class__ = _FlagModule
