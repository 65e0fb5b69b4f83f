"""Dropout of quantized numbers, which passes them."""

from __future__ import annotations

from facula import nn

__all__ = ["Dropout"]


class Dropout(nn.Dropout):
    """The tensor as it is: quantized models do not train.

    Args:
        p (float), inplace (bool): as nn.Dropout's.
    """

    def forward(self, input):
        """The tensor itself."""
        return input

    def _get_name(self):
        return "QuantizedDropout"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From an nn.Dropout."""
        return cls(mod.p, mod.inplace)

    @classmethod
    def from_reference(cls, mod, scale, zero_point):
        """From an nn.Dropout."""
        return cls(mod.p, mod.inplace)
