"""Utilities: data loading, hooks, checkpointing of activations."""

from __future__ import annotations

from facula import _missing

_HOME = {
    "swap_tensors": "_swap",
    "get_cpp_backtrace": "cpp_backtrace",
    "ThroughputBenchmark": "throughput_benchmark",
    "rename_privateuse1_backend": "backend_registration",
    "generate_methods_for_privateuse1_backend": "backend_registration",
}


def __getattr__(name):
    from importlib import import_module

    if name.startswith("__"):
        raise AttributeError(name)
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    return _missing.submodule(__name__, name)


def __dir__():
    from pkgutil import iter_modules

    return sorted({*globals(), *(module.name for module in iter_modules(__path__))})
