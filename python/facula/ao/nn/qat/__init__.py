"""Modules that train with fake-quantized weights, made by `ao.quantization.prepare_qat`."""

from __future__ import annotations

from facula import _missing

from .modules import *  # noqa: F403


def __getattr__(name):
    if name.startswith("__"):
        raise _missing.attribute(__name__, name)
    return _missing.submodule(__name__, name)
