"""Quantization and pruning of models."""

from __future__ import annotations

from facula import _missing


def __getattr__(name):
    if name.startswith("__"):
        raise _missing.attribute(__name__, name)
    return _missing.submodule(__name__, name)
