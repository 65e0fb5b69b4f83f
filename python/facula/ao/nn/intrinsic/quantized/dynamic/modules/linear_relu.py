"""Linear layer and ReLU of floats with a quantized weight."""

from __future__ import annotations

import facula
from facula.ao.nn import intrinsic as nni
from facula.ao.nn.quantized import dynamic as nnqd

__all__ = ["LinearReLU"]


class LinearReLU(nnqd.Linear):
    """Linear and ReLU with weights of qint8; inputs are quantized by their own range.

    Args:
        in_features, out_features, bias, dtype: as `ao.nn.quantized.dynamic.Linear`'s.
    """

    _FLOAT_MODULE = nni.LinearReLU

    def __init__(self, in_features, out_features, bias=True, dtype=facula.qint8):
        super().__init__(in_features, out_features, bias, dtype)

    def forward(self, x):
        """What is positive of the result (*, out), of x's dtype."""
        packed = self._packed_params
        if packed.dtype is facula.float16:
            result = facula.ops.quantized.linear_relu_dynamic_fp16(x, packed._packed_params)
        else:
            # Half of the integers where x86 sums bytes in 16 bits; PyTorch does so on all.
            result = facula.ops.quantized.linear_relu_dynamic(x, packed._packed_params, True)
        return result.to(x.dtype)

    def _get_name(self):
        return "DynamicQuantizedLinearReLU"
