"""Modules of floats with quantized weights; inputs are quantized by their own range."""

from __future__ import annotations

import facula
from facula.ao.nn import quantized

__all__ = ["Linear"]


class Linear(quantized.Linear):
    """A linear layer of floats with weights of qint8."""

    def forward(self, x):
        """The result, float32."""
        # Half of the integers, as PyTorch does for processors whose sums of bytes saturate.
        return facula.ops.quantized.linear_dynamic(x, self._packed, True)

    def _get_name(self):
        return "DynamicQuantizedLinear"

    def extra_repr(self):
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"dtype=torch.qint8, qscheme={self.weight().qscheme()}"
        )

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From an nn.Linear with a configuration."""
        bias = None if mod.bias is None else mod.bias.detach()
        return cls(mod.in_features, mod.out_features, quantized._weight_of(mod), bias)
