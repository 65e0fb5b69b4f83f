"""Programs as graphs that need no Python of their own: `export(module, args)`."""

from __future__ import annotations

import importlib

__all__ = [
    "AdditionalInputs",
    "Dim",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "ExportedProgram",
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
]

_PLACES = {
    "dynamic_shapes": ("AdditionalInputs", "Dim", "ShapesCollection", "dims"),
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
