"""Operators that take functions: branches, loops and scans, which graphs keep as one step."""

from __future__ import annotations

import importlib
import sys
import types

__all__ = ["associative_scan", "cond", "map", "out_dtype", "scan", "while_loop"]


def __getattr__(name):
    if name in __all__:
        return getattr(importlib.import_module(f"{__name__}.{name}"), name)
    from facula import _missing

    return _missing.submodule(__name__, name)


def __dir__():
    return sorted({*globals(), *__all__})


class _Package(types.ModuleType):
    """Keeps a name the function where the module of this name is imported."""

    def __setattr__(self, name, value):
        is_module = name in __all__ and isinstance(value, types.ModuleType)
        super().__setattr__(name, getattr(value, name) if is_module else value)


sys.modules[__name__].__class__ = _Package
