"""Pruning of models: sparsifiers keep masks of weights, schedulers move the levels of sparsity."""

from __future__ import annotations

from importlib import import_module

from facula import _missing

# Where names come from; each module is loaded when one of its names is first asked for.
_MODULES = (
    "sparsifier.base_sparsifier",
    "sparsifier.nearly_diagonal_sparsifier",
    "sparsifier.utils",
    "sparsifier.weight_norm_sparsifier",
    "scheduler.base_scheduler",
    "scheduler.cubic_scheduler",
    "scheduler.lambda_scheduler",
    "_mappings",
)


def __getattr__(name):
    if name.startswith("__"):
        raise _missing.attribute(__name__, name)
    if name not in ("sparsifier", "scheduler", "_mappings", "_experimental"):
        for module in _MODULES:
            found = import_module(f"{__name__}.{module}")
            if name in found.__all__:
                value = getattr(found, name)
                globals()[name] = value
                return value
    return _missing.submodule(__name__, name)
