"""Linear layers of quantized numbers."""

from __future__ import annotations

import facula
from facula import nn
from facula.ao.nn import intrinsic as nni
from facula.ao.nn._from_float import check_float
from facula.nn.utils.fusion import fuse_linear_bn_weights

from .utils import PackedModule, ScaledModule, WeightedQuantizedModule, quantize_weight

__all__ = ["LinearPackedParams", "Linear"]


class LinearPackedParams(PackedModule):
    """The weight and bias of a quantized linear layer, packed; saved as they were before.

    Args:
        dtype (facula.dtype): of the weight, qint8 or float16.

    Raises:
        RuntimeError: another dtype.
    """

    _version = 3
    _KNOWS_ALL_NAMES = False

    def __init__(self, dtype=facula.qint8):
        super().__init__()
        self.dtype = dtype
        if dtype is facula.qint8:
            weight = facula._empty_affine_quantized(
                [1, 1], scale=1.0, zero_point=0, dtype=facula.qint8
            )
        elif dtype is facula.float16:
            weight = facula.zeros([1, 1])
        else:
            raise RuntimeError(f"Unsupported dtype {dtype} specified for quantized linear!")
        self.set_weight_bias(weight, None)

    def set_weight_bias(self, weight, bias):
        """Pack another weight (out, in) and bias (out) or None."""
        half = self.dtype is facula.float16
        quantized = facula.ops.quantized
        pack = quantized.linear_prepack_fp16 if half else quantized.linear_prepack
        self._packed_params = pack(weight, bias)

    def _weight_bias(self):
        return facula.ops.quantized.linear_unpack(self._packed_params)

    _unpacked = _weight_bias

    def _take(self, dtype, saved):
        weight, bias = saved
        own = self._weight_bias()[0]
        # A layer that was made without sizes takes any weight.
        if tuple(own.shape) not in ((1, 1), tuple(weight.shape)):
            raise ValueError(
                f"the weight has shape {tuple(weight.shape)} in the checkpoint and "
                f"{tuple(own.shape)} in the model"
            )
        self.dtype = dtype
        self.set_weight_bias(weight, None if bias is None else bias.detach())


class Linear(ScaledModule, WeightedQuantizedModule):
    """A linear layer of quint8 numbers with weights of qint8.

    Args:
        in_features, out_features (int): the sizes. bias_ (bool): whether there is a bias.
        dtype (facula.dtype): of the weight.

    Attributes:
        scale (float), zero_point (int): of the result.

    Example:
        >>> from facula.ao.nn.quantized import Linear
        >>> Linear(3, 2)
        QuantizedLinear(in_features=3, out_features=2, scale=1.0, zero_point=0, qscheme=torch.per_tensor_affine)
    """  # noqa: E501

    _version = 3
    _FLOAT_MODULE = (nn.Linear, nn.modules.linear.NonDynamicallyQuantizableLinear)

    def __init__(self, in_features, out_features, bias_=True, dtype=facula.qint8):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.scale, self.zero_point = 1.0, 0
        bias = facula.zeros(out_features) if bias_ else None
        if dtype is facula.qint8:
            weight = facula._empty_affine_quantized(
                [out_features, in_features], scale=1.0, zero_point=0, dtype=facula.qint8
            )
        elif dtype is facula.float16:
            weight = facula.zeros([out_features, in_features])
        else:
            raise RuntimeError(f"Unsupported dtype {dtype} specified for quantized linear!")
        self._packed_params = LinearPackedParams(dtype)
        self._packed_params.set_weight_bias(weight, bias)

    def forward(self, x):
        """The quantized result (*, out) of a quantized tensor (*, in)."""
        run = facula.ops.quantized.linear
        return run(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def _weight_bias(self):
        return self._packed_params._weight_bias()

    def weight(self):
        """The quantized weight."""
        return self._weight_bias()[0]

    def bias(self):
        """The float bias, or None."""
        return self._weight_bias()[1]

    def set_weight_bias(self, w, b):
        """Take another weight (out, in) and bias (out) or None."""
        self._packed_params.set_weight_bias(w, b)

    def _get_name(self):
        return "QuantizedLinear"

    def extra_repr(self):
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"scale={self.scale}, zero_point={self.zero_point}, qscheme={self.weight().qscheme()}"
        )

    def __repr__(self):
        return f"{self._get_name()}({self.extra_repr()})"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a prepared linear layer, a fused one, or one that was trained with fake weights.

        Raises:
            AssertionError: another class, or a module without configuration.
        """
        inner, weight_observer, output_observer = _observed(cls, mod)
        if not use_precomputed_fake_quant:
            weight_observer(inner.weight)
        if weight_observer.dtype is not facula.qint8:
            raise AssertionError(
                f"Weight observer must have dtype torch.qint8; got {weight_observer.dtype}"
            )
        scale, zero_point = output_observer.calculate_qparams()
        made = cls._of_size(mod, inner)
        made.set_weight_bias(quantize_weight(inner.weight.float(), weight_observer), inner.bias)
        made.scale, made.zero_point = float(scale), int(zero_point)
        return made

    @classmethod
    def _of_size(cls, mod, inner):
        return cls(inner.in_features, inner.out_features)

    @classmethod
    def from_reference(cls, ref_qlinear, output_scale, output_zero_point):
        """From a reference layer, with the scale and zero point of results."""
        made = cls(ref_qlinear.in_features, ref_qlinear.out_features)
        made.set_weight_bias(ref_qlinear.get_quantized_weight(), ref_qlinear.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made


def _observed(cls, mod):
    """(the module with the weight, the weight's observer, the result's observer)"""
    if hasattr(mod, "weight_fake_quant"):
        if type(mod) is nni.qat.LinearBn1d:
            bn = mod.bn
            mod.weight, mod.bias = fuse_linear_bn_weights(
                mod.weight, mod.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
            )
        return mod, mod.weight_fake_quant, mod.activation_post_process
    check_float(f"nnq.{cls.__name__}", mod, cls._FLOAT_MODULE)
    output_observer = mod.activation_post_process
    inner = mod[0] if isinstance(mod, nni._FusedModule) else mod
    config = getattr(inner, "qconfig", None) or mod.qconfig
    return inner, config.weight(), output_observer
