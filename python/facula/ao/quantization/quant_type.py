"""The ways a model is quantized."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["QuantType"]


class QuantType(IntEnum):
    """Whether activations are quantized by their own range, by an observed one, or not at all."""

    DYNAMIC = 0
    STATIC = 1
    QAT = 2
    WEIGHT_ONLY = 3
