"""Modules of quantized numbers, made by `facula.ao.quantization.convert`."""

from __future__ import annotations

from facula import _missing

from . import modules
from .modules import *  # noqa: F403
from .modules import MaxPool2d  # noqa: F401

__all__ = [name for name in modules.__all__ if name != "MaxPool2d"]


def __getattr__(name):
    if name.startswith("__"):
        raise _missing.attribute(__name__, name)
    return _missing.submodule(__name__, name)
