"""Fused modules of quantized numbers."""

from __future__ import annotations

from facula import _missing

from .modules import *  # noqa: F403
from .modules import __all__  # noqa: F401


def __getattr__(name):
    if name.startswith("__"):
        raise _missing.attribute(__name__, name)
    return _missing.submodule(__name__, name)
