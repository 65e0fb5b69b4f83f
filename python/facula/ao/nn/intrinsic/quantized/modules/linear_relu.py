"""Linear layer and activation of quantized numbers."""

from __future__ import annotations

import facula
from facula.ao.nn import intrinsic as nni
from facula.ao.nn import quantized as nnq

__all__ = ["LinearReLU", "LinearLeakyReLU", "LinearTanh"]


class LinearReLU(nnq.Linear):
    """Linear and ReLU of quint8 numbers; arguments as `ao.nn.quantized.Linear`'s."""

    _FLOAT_MODULE = nni.LinearReLU

    def __init__(self, in_features, out_features, bias=True, dtype=facula.qint8):
        super().__init__(in_features, out_features, bias, dtype)

    def forward(self, x):
        """What is positive of the result (*, out) of a quantized tensor (*, in)."""
        run = facula.ops.quantized.linear_relu
        return run(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def _get_name(self):
        return "QuantizedLinearReLU"


class LinearLeakyReLU(nnq.Linear):
    """Linear and leaky_relu of quint8 numbers.

    Args:
        negative_slope (float): of leaky_relu; the others are `ao.nn.quantized.Linear`'s.
    """

    _FLOAT_MODULE = nni.LinearLeakyReLU

    def __init__(self, in_features, out_features, negative_slope, bias=True, dtype=facula.qint8):
        super().__init__(in_features, out_features, bias, dtype)
        self.negative_slope = negative_slope

    def forward(self, x):
        """The result (*, out) of a quantized tensor (*, in)."""
        packed = self._packed_params._packed_params
        run = facula.ops.quantized.linear_leaky_relu
        return run(x, packed, self.scale, self.zero_point, self.negative_slope)

    def _get_name(self):
        return "QuantizedLinearLeakyReLU"

    @classmethod
    def _of_size(cls, mod, inner):
        return cls(inner.in_features, inner.out_features, mod[1].negative_slope)


class LinearTanh(nnq.Linear):
    """Linear and tanh of quint8 numbers; arguments as `ao.nn.quantized.Linear`'s."""

    _FLOAT_MODULE = nni.LinearTanh

    def __init__(self, in_features, out_features, bias=True, dtype=facula.qint8):
        super().__init__(in_features, out_features, bias, dtype)

    def forward(self, x):
        """The result (*, out) of a quantized tensor (*, in)."""
        run = facula.ops.quantized.linear_tanh
        return run(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def _get_name(self):
        return "QuantizedLinearTanh"
