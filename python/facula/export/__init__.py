"""Programs as graphs that need no Python of their own: `export(module, args)`."""

from __future__ import annotations

import importlib
import sys
import types

__all__ = [
    "AdditionalInputs",
    "CustomDecompTable",
    "Dim",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "ExportedProgram",
    "FlatArgsAdapter",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "ShapesCollection",
    "default_decompositions",
    "dims",
    "draft_export",
    "export",
    "export_for_training",
    "load",
    "register_dataclass",
    "save",
    "unflatten",
]

_PLACES = {
    "dynamic_shapes": ("AdditionalInputs", "Dim", "ShapesCollection", "dims"),
    "unflatten": ("FlatArgsAdapter", "InterpreterModule", "UnflattenedModule", "unflatten"),
    "decomp_utils": ("CustomDecompTable",),
    "graph_signature": ("ExportBackwardSignature", "ExportGraphSignature"),
    "exported_program": (
        "ExportedProgram",
        "ModuleCallEntry",
        "ModuleCallSignature",
        "default_decompositions",
    ),
    "_archive": ("load", "save"),
    "_export": ("draft_export", "export", "export_for_training", "register_dataclass"),
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}


def __getattr__(name):
    if name in _PLACE_OF:
        value = getattr(importlib.import_module(f"{__name__}.{_PLACE_OF[name]}"), name)
        globals()[name] = value
        return value
    from facula import _missing

    return _missing.submodule(__name__, name)


def __dir__():
    return sorted({*globals(), *__all__})


class _Package(types.ModuleType):
    """Keeps `unflatten` the function where the module of this name is imported."""

    def __setattr__(self, name, value):
        is_module = name == "unflatten" and isinstance(value, types.ModuleType)
        super().__setattr__(name, value.unflatten if is_module else value)


sys.modules[__name__].__class__ = _Package
