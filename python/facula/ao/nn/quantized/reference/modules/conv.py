"""The reference convolutions, and transposed ones."""

from __future__ import annotations

import facula  # noqa: F401  (examples)
from facula import nn
from facula.ao.nn._from_float import CONV_OPTIONS, options_of

from .utils import ReferenceQuantizedModule

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _Convolution(ReferenceQuantizedModule):
    """What these convolutions share; the float class comes after it in the order of bases."""

    _OPTIONS = CONV_OPTIONS

    def __init__(self, *args, weight_qparams=None, device=None, dtype=None, **kwargs):
        super().__init__(*args, device=device, dtype=dtype, **kwargs)
        self._init_weight_qparams(weight_qparams, device)

    def _get_name(self):
        return f"Quantized{type(self).__name__}(Reference)"

    def forward(self, x):
        """The convolution of floats with the rounded weight."""
        return self._conv_forward(x, self.get_weight(), self.bias)

    @classmethod
    def from_float(cls, float_conv, weight_qparams):
        """From a float convolution, with copies of its parameters."""
        made = cls(
            **options_of(float_conv, cls._OPTIONS),
            device=float_conv.weight.device,
            dtype=float_conv.weight.dtype,
            weight_qparams=weight_qparams,
        )
        return made._take_parameters(float_conv)


class _Transposed(_Convolution):
    """What transposed ones add: results of a size that is asked for."""

    _OPTIONS = (*CONV_OPTIONS, "output_padding")

    def forward(self, x, output_size=None):
        """The transposed convolution of floats with the rounded weight.

        Args:
            x (Tensor). output_size (list of int, optional): of the result.
        """
        dims = len(self.kernel_size)
        geometry = (self.stride, self.padding, self.kernel_size, dims, self.dilation)
        more = self._output_padding(x, output_size, *geometry)
        return self._op()(
            x,
            self.get_weight(),
            self.bias,
            self.stride,
            self.padding,
            more,
            self.groups,
            self.dilation,
        )


class Conv1d(_Convolution, nn.Conv1d):
    """A convolution over one dimension with a rounded weight.

    Args:
        weight_qparams (dict): `qscheme`, `dtype`, `scale`, `zero_point` and `axis` of the weight;
            the others are nn.Conv1d's.

    Example:
        >>> import facula.ao.nn.quantized.reference as reference
        >>> reference.Conv1d(1, 2, 3)(facula.ones(1, 1, 5)).shape
        facula.Size([1, 2, 3])
    """


class Conv2d(_Convolution, nn.Conv2d):
    """A convolution over two dimensions with a rounded weight; arguments as Conv1d's."""


class Conv3d(_Convolution, nn.Conv3d):
    """A convolution over three dimensions with a rounded weight; arguments as Conv1d's."""


class ConvTranspose1d(_Transposed, nn.ConvTranspose1d):
    """A transposed convolution with a rounded weight; arguments as nn.ConvTranspose1d's."""


class ConvTranspose2d(_Transposed, nn.ConvTranspose2d):
    """A transposed convolution with a rounded weight; arguments as nn.ConvTranspose2d's."""


class ConvTranspose3d(_Transposed, nn.ConvTranspose3d):
    """A transposed convolution with a rounded weight; arguments as nn.ConvTranspose3d's."""
