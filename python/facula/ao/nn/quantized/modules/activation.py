"""Activations of quantized numbers."""

from __future__ import annotations

import facula
from facula import nn
from facula.ao.nn.quantizable.modules.activation import (
    MultiheadAttention as _QuantizableAttention,
)
from facula.nn import Module

__all__ = [
    "ReLU6",
    "Hardswish",
    "ELU",
    "LeakyReLU",
    "Sigmoid",
    "Softmax",
    "MultiheadAttention",
    "PReLU",
]


def _qparams(mod):
    scale, zero_point = mod.activation_post_process.calculate_qparams()
    return float(scale), int(zero_point)


class ReLU6(nn.ReLU6):
    """Quantized values clamped to [0, 6].

    Args:
        inplace (bool): whether the argument itself is changed.

    Example:
        >>> from facula.ao.nn.quantized import ReLU6
        >>> ReLU6()(facula.quantize_per_tensor(facula.tensor([-1.0, 7.0]), 1.0, 8, facula.quint8)).int_repr()
        tensor([ 8, 14], dtype=facula.uint8)
    """  # noqa: E501

    def __init__(self, inplace=False):
        super().__init__(inplace)

    def forward(self, input):
        """The clamped tensor."""
        return facula.ops.quantized.relu6(input, self.inplace)

    def _get_name(self):
        return "QuantizedReLU6"

    def extra_repr(self):
        return "inplace=True" if self.inplace else ""

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """From a prepared nn.ReLU6."""
        return ReLU6(mod.inplace)


class Hardswish(nn.Hardswish):
    """hardswish of quantized values.

    Args:
        scale (float), zero_point (int): of the result.
    """

    def __init__(self, scale, zero_point, device=None, dtype=None):
        super().__init__()
        self.register_buffer("scale", facula.tensor(scale, device=device))
        self.register_buffer("zero_point", facula.tensor(zero_point, device=device))

    def forward(self, input):
        """The quantized result."""
        return facula.ops.quantized.hardswish(input, self.scale, self.zero_point)

    def _get_name(self):
        return "QuantizedHardswish"

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """From a prepared nn.Hardswish."""
        return Hardswish(*_qparams(mod))

    @classmethod
    def from_reference(cls, mod, scale, zero_point):
        """From a float module, with the scale and zero point of results."""
        return cls(float(scale), int(zero_point))


class ELU(nn.ELU):
    """elu of quantized values.

    Args:
        scale (float), zero_point (int): of the result. alpha (float): of elu.
    """

    def __init__(self, scale, zero_point, alpha=1.0):
        super().__init__(alpha)
        self.scale, self.zero_point = scale, zero_point

    def forward(self, input):
        """The quantized result."""
        return facula.ops.quantized.elu(input, self.scale, self.zero_point, self.alpha)

    def _get_name(self):
        return "QuantizedELU"

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """From a prepared nn.ELU."""
        return ELU(*_qparams(mod), mod.alpha)

    @classmethod
    def from_reference(cls, mod, scale, zero_point):
        """From a float module, with the scale and zero point of results."""
        return cls(float(scale), int(zero_point), mod.alpha)


class LeakyReLU(nn.LeakyReLU):
    """leaky_relu of quantized values.

    Args:
        scale (float), zero_point (int): of the result. negative_slope (float), inplace (bool): as
            nn.LeakyReLU's.
    """

    def __init__(
        self, scale, zero_point, negative_slope=0.01, inplace=False, device=None, dtype=None
    ):
        super().__init__(negative_slope, inplace)
        self.register_buffer("scale", facula.tensor(scale, device=device))
        self.register_buffer("zero_point", facula.tensor(zero_point, device=device))

    def forward(self, input):
        """The quantized result."""
        return facula.ops.quantized.leaky_relu(
            input, self.negative_slope, self.inplace, self.scale, self.zero_point
        )

    def _get_name(self):
        return "QuantizedLeakyReLU"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a prepared nn.LeakyReLU."""
        return cls(*_qparams(mod), mod.negative_slope, mod.inplace)

    @classmethod
    def from_reference(cls, mod, scale, zero_point):
        """From a float module, with the scale and zero point of results."""
        return cls(float(scale), int(zero_point), mod.negative_slope, mod.inplace)


class Sigmoid(nn.Sigmoid):
    """sigmoid of quantized values.

    Args:
        output_scale (float), output_zero_point (int): of the result.
    """

    def __init__(self, output_scale, output_zero_point):
        super().__init__()
        self.output_scale, self.output_zero_point = output_scale, output_zero_point

    def forward(self, input):
        """The quantized result."""
        return facula.ops.quantized.sigmoid(input, self.output_scale, self.output_zero_point)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a prepared nn.Sigmoid."""
        return cls(*_qparams(mod))


class Softmax(nn.Softmax):
    """softmax of quantized values.

    Args:
        dim (int): of the sums. scale (float), zero_point (int): of the result.
    """

    def __init__(self, dim=None, scale=1.0, zero_point=0):
        super().__init__()
        self.dim, self.scale, self.zero_point = dim, scale, zero_point

    def forward(self, input):
        """The quantized result."""
        dim = self.dim
        if dim is None:
            dim = 0 if input.dim() in (0, 1, 3) else 1
        return facula.ops.quantized.softmax(input, dim, self.scale, self.zero_point)

    def _get_name(self):
        return "QuantizedSoftmax"

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """From a prepared nn.Softmax."""
        return Softmax(mod.dim, *_qparams(mod))

    @classmethod
    def from_reference(cls, mod, scale, zero_point):
        """From a float module, with the scale and zero point of results."""
        return cls(mod.dim, float(scale), int(zero_point))


class MultiheadAttention(_QuantizableAttention):
    """Attention of quantized numbers, converted from a quantizable one that has seen data."""

    _FLOAT_MODULE = _QuantizableAttention

    def _get_name(self):
        return "QuantizedMultiheadAttention"

    @classmethod
    def from_float(cls, other):
        """Raises NotImplementedError: attention is observed before it is converted."""
        raise NotImplementedError(
            "nnq.MultiheadAttention.from_float(): expected an observed module; prepare() makes one"
        )

    @classmethod
    def from_observed(cls, other):
        """From a quantizable attention that has seen data."""
        from facula.ao import quantization

        converted = quantization.convert(other, inplace=False, remove_qconfig=True)
        converted.__class__ = cls
        # The bias rows of keys and values are quantized by their own range.
        for name in ("bias_k", "bias_v"):
            rows = getattr(converted, name)
            if rows is None:
                continue
            delattr(converted, name)
            rows = facula.quantize_per_tensor_dynamic(rows.detach(), facula.quint8, False)
            setattr(converted, name, rows)
        converted.in_proj_weight = converted.in_proj_bias = None
        return converted


class PReLU(Module):
    """prelu of quantized values, with a weight of quint8.

    Args:
        output_scale (float), output_zero_point (int): of the result. num_parameters (int): 1, or
            the number of channels.
    """

    def __init__(self, output_scale, output_zero_point, num_parameters=1):
        super().__init__()
        self.num_parameters = num_parameters
        self.scale, self.zero_point = output_scale, output_zero_point
        weight = facula.randn(num_parameters)
        self.weight = facula.quantize_per_tensor(weight, 1.0, 0, facula.quint8)

    def set_weight(self, w):
        """Take another quantized weight."""
        self.weight = w

    def forward(self, input):
        """The quantized result."""
        return facula.ops.quantized.prelu(input, self.weight, self.scale, self.zero_point)

    def _get_name(self):
        return "QuantizedPReLU"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a prepared nn.PReLU."""
        made = cls(*_qparams(mod), mod.num_parameters)
        observer = mod.qconfig.weight()
        observer(mod.weight)
        if observer.dtype is not facula.quint8:
            raise AssertionError(f"PReLU's weight observer must be of quint8; got {observer.dtype}")
        made.set_weight(_quantized_by(observer, mod.weight))
        return made

    @classmethod
    def from_reference(cls, mod, scale, zero_point):
        """From a float module, with the scale and zero point of results."""
        from facula.ao.quantization.observer import MinMaxObserver

        made = cls(float(scale), int(zero_point), mod.num_parameters)
        observer = MinMaxObserver(dtype=facula.quint8)
        observer(mod.weight)
        made.set_weight(_quantized_by(observer, mod.weight))
        return made


def _quantized_by(observer, weight):
    scale, zero_point = observer.calculate_qparams()
    return facula.quantize_per_tensor(
        weight.detach().float(), float(scale), int(zero_point), facula.quint8
    )
