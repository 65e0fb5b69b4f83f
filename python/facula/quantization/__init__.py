"""The older name of `facula.ao.quantization`."""

from __future__ import annotations

from facula.ao import quantization


def __getattr__(name):
    return getattr(quantization, name)
