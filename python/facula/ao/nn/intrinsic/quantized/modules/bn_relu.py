"""Batch normalization and ReLU of quantized numbers."""

from __future__ import annotations

import facula
from facula.ao.nn import intrinsic as nni
from facula.ao.nn import quantized as nnq

__all__ = ["BNReLU2d", "BNReLU3d"]


class BNReLU2d(nnq.BatchNorm2d):
    """BatchNorm2d and ReLU of quint8 images; arguments as `nn.BatchNorm2d`'s."""

    _FLOAT_MODULE = nni.BNReLU2d

    def forward(self, input):
        """What is positive of the normalized tensor (N, C, H, W)."""
        self._check_input_dim(input)
        return self._run(input, facula.ops.quantized.batch_norm2d_relu)


class BNReLU3d(nnq.BatchNorm3d):
    """BatchNorm3d and ReLU of quint8 volumes; arguments as `nn.BatchNorm3d`'s."""

    _FLOAT_MODULE = nni.BNReLU3d

    def forward(self, input):
        """What is positive of the normalized tensor (N, C, D, H, W)."""
        self._check_input_dim(input)
        return self._run(input, facula.ops.quantized.batch_norm3d_relu)
