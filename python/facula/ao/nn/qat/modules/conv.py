"""Convolutions that train with a fake-quantized weight."""

from __future__ import annotations

from facula import nn
from facula.ao.nn import intrinsic as nni
from facula.ao.nn._from_float import CONV_OPTIONS, check_float, options_of

from ._common import check_qconfig

__all__ = ["Conv1d", "Conv2d", "Conv3d"]


class _ConvNd(nn.modules.conv._ConvNd):
    """What these convolutions share; the float class comes after it in the order of bases."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        qconfig=None,
        device=None,
        dtype=None,
    ):
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            bias=bias,
            padding_mode=padding_mode,
            device=device,
            dtype=dtype,
        )
        check_qconfig(qconfig)
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight(factory_kwargs={"device": device, "dtype": dtype})

    def forward(self, input):
        """The convolution with the rounded weight."""
        return self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a float convolution with a configuration, or a fused one; parameters are shared.

        Raises:
            AssertionError: another class, or no configuration.
        """
        check_float(f"qat.{cls.__name__}", mod, cls._FLOAT_MODULE)
        inner = mod[0] if issubclass(type(mod), nni._FusedModule) else mod
        made = cls(**options_of(inner, CONV_OPTIONS), qconfig=mod.qconfig)
        made.weight, made.bias = inner.weight, inner.bias
        return made

    def to_float(self):
        """A float convolution with copies of the parameters, and a ReLU where this has one."""
        conv = self._FLOAT_CONV_MODULE(**options_of(self, CONV_OPTIONS))
        conv.weight = nn.Parameter(self.weight.detach())
        if self.bias is not None:
            conv.bias = nn.Parameter(self.bias.detach())
        if not issubclass(self._FLOAT_MODULE, nni._FusedModule):
            return conv
        return self._FLOAT_MODULE(conv, self._FLOAT_RELU_MODULE()).train(self.training)


class Conv1d(_ConvNd, nn.Conv1d):
    """A convolution over one dimension whose weight is rounded as quantization will round it.

    Args:
        qconfig (QConfig): has the weight's fake quantizer; the others are nn.Conv1d's.
    """

    _FLOAT_MODULE = _FLOAT_CONV_MODULE = nn.Conv1d


class Conv2d(_ConvNd, nn.Conv2d):
    """A convolution over two dimensions with a rounded weight; arguments as Conv1d's."""

    _FLOAT_MODULE = _FLOAT_CONV_MODULE = nn.Conv2d


class Conv3d(_ConvNd, nn.Conv3d):
    """A convolution over three dimensions with a rounded weight; arguments as Conv1d's."""

    _FLOAT_MODULE = _FLOAT_CONV_MODULE = nn.Conv3d
