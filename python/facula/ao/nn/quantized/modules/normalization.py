"""Normalizations of quantized numbers."""

from __future__ import annotations

import facula
from facula import nn

__all__ = ["LayerNorm", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]


def _take(module, weight, bias, scale, zero_point, device):
    module.weight, module.bias = weight, bias
    module.register_buffer("scale", facula.tensor(scale, device=device))
    module.register_buffer("zero_point", facula.tensor(zero_point, device=device))


def _qparams(mod):
    scale, zero_point = mod.activation_post_process.calculate_qparams()
    return float(scale), int(zero_point)


class LayerNorm(nn.LayerNorm):
    """Layer normalization of quint8 numbers.

    Args:
        normalized_shape, eps, elementwise_affine: as nn.LayerNorm's. weight, bias (Parameter):
            of floats. scale (float), zero_point (int): of the result.
    """

    def __init__(
        self,
        normalized_shape,
        weight,
        bias,
        scale,
        zero_point,
        eps=1e-05,
        elementwise_affine=True,
        device=None,
        dtype=None,
    ):
        super().__init__(normalized_shape, eps, elementwise_affine, device=device, dtype=dtype)
        _take(self, weight, bias, scale, zero_point, device)

    def forward(self, input):
        """The quantized result."""
        return facula.ops.quantized.layer_norm(
            input,
            self.normalized_shape,
            self.weight,
            self.bias,
            self.eps,
            self.scale,
            self.zero_point,
        )

    def _get_name(self):
        return "QuantizedLayerNorm"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a prepared nn.LayerNorm."""
        return cls.from_reference(mod, *_qparams(mod))

    @classmethod
    def from_reference(cls, mod, scale, zero_point):
        """From a float module, with the scale and zero point of results."""
        shape = mod.normalized_shape
        affine = mod.elementwise_affine
        return cls(shape, mod.weight, mod.bias, float(scale), int(zero_point), mod.eps, affine)


class GroupNorm(nn.GroupNorm):
    """Group normalization of quint8 numbers.

    Args:
        num_groups, num_channels, eps, affine: as nn.GroupNorm's. weight, bias (Parameter): of
            floats. scale (float), zero_point (int): of the result.
    """

    def __init__(
        self,
        num_groups,
        num_channels,
        weight,
        bias,
        scale,
        zero_point,
        eps=1e-05,
        affine=True,
        device=None,
        dtype=None,
    ):
        super().__init__(num_groups, num_channels, eps, affine, device=device, dtype=dtype)
        _take(self, weight, bias, scale, zero_point, device)

    def forward(self, input):
        """The quantized result."""
        return facula.ops.quantized.group_norm(
            input, self.num_groups, self.weight, self.bias, self.eps, self.scale, self.zero_point
        )

    def _get_name(self):
        return "QuantizedGroupNorm"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a prepared nn.GroupNorm."""
        sizes = (mod.num_groups, mod.num_channels)
        return cls(*sizes, mod.weight, mod.bias, *_qparams(mod), mod.eps, mod.affine)


class _InstanceNorm:
    """What quantized instance normalizations share."""

    def __init__(
        self,
        num_features,
        weight,
        bias,
        scale,
        zero_point,
        eps=1e-05,
        momentum=0.1,
        affine=False,
        track_running_stats=False,
        device=None,
        dtype=None,
    ):
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device=device, dtype=dtype
        )
        _take(self, weight, bias, scale, zero_point, device)

    def forward(self, input):
        """The quantized result."""
        return facula.ops.quantized.instance_norm(
            input, self.weight, self.bias, self.eps, self.scale, self.zero_point
        )

    def _get_name(self):
        return f"Quantized{type(self).__name__}"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a prepared instance normalization."""
        return cls.from_reference(mod, *_qparams(mod))

    @classmethod
    def from_reference(cls, mod, scale, zero_point):
        """From a float module, with the scale and zero point of results."""
        values = (mod.weight, mod.bias, float(scale), int(zero_point))
        return cls(mod.num_features, *values, mod.eps, affine=mod.affine)


class InstanceNorm1d(_InstanceNorm, nn.InstanceNorm1d):
    """Instance normalization of quint8 sequences.

    Args:
        num_features, eps, momentum, affine, track_running_stats: as nn.InstanceNorm1d's.
        weight, bias (Parameter or None): of floats. scale (float), zero_point (int): of the
            result.
    """


class InstanceNorm2d(_InstanceNorm, nn.InstanceNorm2d):
    """Instance normalization of quint8 images; arguments as InstanceNorm1d's."""


class InstanceNorm3d(_InstanceNorm, nn.InstanceNorm3d):
    """Instance normalization of quint8 volumes; arguments as InstanceNorm1d's."""
