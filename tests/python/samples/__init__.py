"""The tables of samples: one file per family of operators, each with OPS."""

import importlib
import pkgutil


def load_ops():
    """All rows of all families, with `family` set to the name of the file."""
    found = []
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda m: m.name):
        for op in getattr(importlib.import_module(f"{__name__}.{module.name}"), "OPS", ()):
            op.family = module.name
            found.append(op)
    return found
