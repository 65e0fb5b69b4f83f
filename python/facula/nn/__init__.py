"""Layers, losses and containers of neural networks; each is imported when it is first used."""

from __future__ import annotations

from facula import _C, _missing

_C._lazy_module(__name__)

_PARAMETER_NAMES = ("Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer")
_SUBMODULES = (
    "attention",
    "common_types",
    "functional",
    "grad",
    "init",
    "intrinsic",
    "modules",
    "parallel",
    "parameter",
    "qat",
    "quantizable",
    "quantized",
    "utils",
)


def _submodule(name):
    from importlib import import_module

    return import_module(f"{__name__}.{name}")


def __getattr__(name):
    if name in _SUBMODULES:
        value = _submodule(name)
    elif name in _PARAMETER_NAMES:
        value = getattr(_submodule("parameter"), name)
    elif name == "DataParallel":
        value = _submodule("parallel").DataParallel
    elif name == "factory_kwargs":
        value = _submodule("_factory").factory_kwargs
    elif name.startswith("__"):
        raise AttributeError(name)
    else:
        modules = _submodule("modules")
        if name not in modules.class_names():
            raise _missing.attribute(__name__, name)
        value = getattr(modules, name)
    globals()[name] = value
    return value


def __dir__():
    names = {*globals(), *_SUBMODULES, *_PARAMETER_NAMES, "factory_kwargs", "DataParallel"}
    return sorted(names.union(_submodule("modules").class_names()))
