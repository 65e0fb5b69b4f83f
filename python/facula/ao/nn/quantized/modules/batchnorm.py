"""Batch normalization of quantized numbers by the statistics that training left."""

from __future__ import annotations

import facula
from facula.ao.nn import intrinsic as nni
from facula.nn.modules.batchnorm import _BatchNorm as _FloatBatchNorm

__all__ = ["BatchNorm2d", "BatchNorm3d"]


class _BatchNorm(_FloatBatchNorm):
    """What quantized batch normalizations share."""

    _dims = 0
    _fused_kinds = ()

    def __init__(self, num_features, eps=1e-05, momentum=0.1, device=None, dtype=None):
        super().__init__(num_features, eps, momentum, True, True, device=device, dtype=dtype)
        self.register_buffer("scale", facula.tensor(1.0, device=device))
        self.register_buffer("zero_point", facula.tensor(0, device=device))

    def _get_name(self):
        return f"Quantized{type(self).__name__}"

    def _check_input_dim(self, input):
        if input.dim() != self._dims + 2:
            raise ValueError(
                f"{type(self).__name__}: input must have {self._dims + 2} dimensions; "
                f"got {input.dim()}"
            )

    def _run(self, input, operator):
        return operator(
            input,
            self.weight,
            self.bias,
            self.running_mean,
            self.running_var,
            self.eps,
            self.scale,
            self.zero_point,
        )

    def forward(self, input):
        """The quantized result."""
        return self._run(input, getattr(facula.ops.quantized, f"batch_norm{self._dims}d"))

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a prepared batch normalization, or one with a ReLU."""
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        inner = mod[0] if isinstance(mod, nni._FusedModule) else mod
        return cls.from_reference(inner, scale, zero_point)

    @classmethod
    def from_reference(cls, bn, output_scale, output_zero_point):
        """From a float module, with the scale and zero point of results."""
        made = cls(bn.num_features, bn.eps, device=bn.weight.device, dtype=bn.weight.dtype)
        made.weight, made.bias = bn.weight, bn.bias
        made.running_mean, made.running_var = bn.running_mean, bn.running_var
        made.scale = facula.as_tensor(output_scale)
        made.zero_point = facula.as_tensor(output_zero_point)
        return made


class BatchNorm2d(_BatchNorm):
    """Batch normalization of quint8 images; arguments as `nn.BatchNorm2d`'s.

    Example:
        >>> from facula.ao.nn.quantized import BatchNorm2d
        >>> x = facula.quantize_per_tensor(facula.ones(1, 2, 3, 3), 0.1, 0, facula.quint8)
        >>> BatchNorm2d(2)(x).int_repr().max()
        tensor(1, dtype=facula.uint8)
    """

    _dims = 2


class BatchNorm3d(_BatchNorm):
    """Batch normalization of quint8 volumes; arguments as `nn.BatchNorm3d`'s."""

    _dims = 3
