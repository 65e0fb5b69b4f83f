"""Convolution and ReLU of quantized numbers."""

from __future__ import annotations

import facula
from facula.ao.nn import intrinsic as nni
from facula.ao.nn import quantized as nnq

__all__ = ["ConvReLU1d", "ConvReLU2d", "ConvReLU3d"]


class _ConvReLU:
    """What quantized convolutions with ReLU share."""

    def forward(self, input):
        """What is positive of the convolution of a quantized tensor (N, C, *)."""
        run = getattr(facula.ops.quantized, f"{self._operator()}_relu")
        return run(self._padded(input), self._packed_params, self.scale, self.zero_point)


class ConvReLU1d(_ConvReLU, nnq.Conv1d):
    """Conv1d and ReLU of quint8 numbers; arguments as `nn.Conv1d`'s."""

    _FLOAT_MODULE = nni.ConvReLU1d


class ConvReLU2d(_ConvReLU, nnq.Conv2d):
    """Conv2d and ReLU of quint8 numbers; arguments as `nn.Conv2d`'s."""

    _FLOAT_MODULE = nni.ConvReLU2d


class ConvReLU3d(_ConvReLU, nnq.Conv3d):
    """Conv3d and ReLU of quint8 numbers; arguments as `nn.Conv3d`'s."""

    _FLOAT_MODULE = nni.ConvReLU3d
