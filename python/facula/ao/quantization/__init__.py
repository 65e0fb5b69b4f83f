"""Modules that mark where a model's numbers become quantized ones. Preparing and converting a
model is missing.
"""

from __future__ import annotations

from facula import _missing
from facula.ao.quantization.stubs import DeQuantStub, QuantStub, QuantWrapper

__all__ = ["DeQuantStub", "QuantStub", "QuantWrapper"]


def __getattr__(name):
    if name.startswith("__"):
        raise _missing.attribute(__name__, name)
    return _missing.submodule(__name__, name)
