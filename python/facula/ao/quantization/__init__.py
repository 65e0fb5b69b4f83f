"""Quantization of models in eager mode: observers, fake quantization, prepare and convert."""

from __future__ import annotations

from importlib import import_module

from facula import _missing

# Functions that are called as their module: importing the module must not hide them.
from .fuse_modules import fuse_modules  # noqa: F401
from .quantize import quantize  # noqa: F401

# Where names come from; each module is loaded when one of its names is first asked for.
_MODULES = (
    "observer",
    "fake_quantize",
    "qconfig",
    "qconfig_mapping",
    "stubs",
    "quantize",
    "fuse_modules",
    "fuser_method_mappings",
    "quantization_mappings",
    "quant_type",
    "utils",
)


def __getattr__(name):
    if name.startswith("__"):
        raise _missing.attribute(__name__, name)
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    for module in _MODULES:
        found = import_module(f"{__name__}.{module}")
        if name in found.__all__:
            value = getattr(found, name)
            globals()[name] = value
            return value
    return _missing.submodule(__name__, name)
