"""Convolutions of floats with quantized weights."""

from __future__ import annotations

import warnings

import facula
from facula import nn
from facula.ao.nn import quantized as nnq

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _Dynamic:
    """What these convolutions share: the scale of the result has no meaning."""

    def __init__(self, in_channels, out_channels, kernel_size, *args, **kwargs):
        warnings.warn(
            f"The current implementation of the {self._get_name()} module has poor numerical "
            "accuracy and its use is not recommended",
            stacklevel=2,
        )
        super().__init__(in_channels, out_channels, kernel_size, *args, **kwargs)

    def forward(self, input, reduce_range=True):
        """The float result of floats (N, C, *), quantized by their range.

        Args:
            reduce_range (bool): whether half of the integers serve.
        """
        run = getattr(facula.ops.quantized, f"{self._operator()}_dynamic")
        return run(self._padded(input), self._packed_params, reduce_range)

    def _get_name(self):
        return f"DynamicQuantized{type(self).__name__}"


class Conv1d(_Dynamic, nnq.Conv1d):
    """A convolution over one dimension with a weight of qint8; arguments as `nn.Conv1d`'s."""

    _FLOAT_MODULE = nn.Conv1d


class Conv2d(_Dynamic, nnq.Conv2d):
    """A convolution over two dimensions with a weight of qint8; arguments as `nn.Conv2d`'s."""

    _FLOAT_MODULE = nn.Conv2d


class Conv3d(_Dynamic, nnq.Conv3d):
    """A convolution over three dimensions with a weight of qint8; arguments as `nn.Conv3d`'s."""

    _FLOAT_MODULE = nn.Conv3d


class ConvTranspose1d(_Dynamic, nnq.ConvTranspose1d):
    """A transposed convolution with a weight of qint8; arguments as `nn.ConvTranspose1d`'s."""

    _FLOAT_MODULE = nn.ConvTranspose1d


class ConvTranspose2d(_Dynamic, nnq.ConvTranspose2d):
    """A transposed convolution with a weight of qint8; arguments as `nn.ConvTranspose2d`'s."""

    _FLOAT_MODULE = nn.ConvTranspose2d


class ConvTranspose3d(_Dynamic, nnq.ConvTranspose3d):
    """A transposed convolution with a weight of qint8; arguments as `nn.ConvTranspose3d`'s."""

    _FLOAT_MODULE = nn.ConvTranspose3d
