"""A convolution of quantized numbers whose result is added to another tensor."""

from __future__ import annotations

import facula
from facula.ao.nn import intrinsic as nni
from facula.ao.nn import quantized as nnq

__all__ = ["ConvAdd2d", "ConvAddReLU2d"]


class ConvAdd2d(nnq.Conv2d):
    """Conv2d of quint8 numbers and a sum; arguments as `nn.Conv2d`'s."""

    _FLOAT_MODULE = nni.ConvAdd2d

    def forward(self, input, extra_input):
        """The sum of the convolution of `input` and the other tensor, both quantized."""
        return facula.ops.quantized.conv2d_add(
            self._padded(input), extra_input, self._packed_params, self.scale, self.zero_point
        )


class ConvAddReLU2d(nnq.Conv2d):
    """Conv2d of quint8 numbers, a sum and ReLU; arguments as `nn.Conv2d`'s."""

    _FLOAT_MODULE = nni.ConvAddReLU2d

    def forward(self, input, extra_input):
        """What is positive of the sum of the convolution and the other tensor, both quantized."""
        return facula.ops.quantized.conv2d_add_relu(
            self._padded(input), extra_input, self._packed_params, self.scale, self.zero_point
        )
