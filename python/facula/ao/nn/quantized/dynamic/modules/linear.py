"""A linear layer of floats with a quantized weight."""

from __future__ import annotations

import facula
from facula import nn
from facula.ao.nn import intrinsic as nni
from facula.ao.nn import quantized as nnq
from facula.ao.nn._from_float import check_float
from facula.ao.nn.quantized.modules.utils import quantize_weight

__all__ = ["Linear"]


class Linear(nnq.Linear):
    """A linear layer of floats with a weight of qint8 or float16.

    Args:
        in_features, out_features (int): the sizes. bias_ (bool): whether there is a bias.
        dtype (facula.dtype): of the weight.

    Example:
        >>> from facula.ao.nn.quantized.dynamic import Linear
        >>> Linear(3, 2)(facula.ones(1, 3)).dtype
        facula.float32
    """

    _version = 4

    def __init__(self, in_features, out_features, bias_=True, dtype=facula.qint8):
        super().__init__(in_features, out_features, bias_, dtype)
        self.version = 4

    def forward(self, x):
        """The result (*, out), of x's dtype."""
        packed = self._packed_params
        if packed.dtype is facula.float16:
            return facula.ops.quantized.linear_dynamic_fp16(x, packed._packed_params).to(x.dtype)
        # Half of the integers, as PyTorch does for processors whose sums of bytes saturate.
        return facula.ops.quantized.linear_dynamic(x, packed._packed_params, True).to(x.dtype)

    def _get_name(self):
        return "DynamicQuantizedLinear"

    def extra_repr(self):
        text = (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"dtype={self._packed_params.dtype}"
        )
        if self._packed_params.dtype is not facula.qint8:
            return text
        return f"{text}, qscheme={self.weight().qscheme()}"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a float layer with a configuration, or one that was trained with fake weights.

        Raises:
            AssertionError: another class, or no configuration.
            RuntimeError: weights of another dtype.
        """
        from facula.ao.nn.qat import dynamic as nnqatd

        kinds = (nn.Linear, nn.modules.linear.NonDynamicallyQuantizableLinear, nnqatd.Linear)
        name = f"nnq.dynamic.{cls.__name__}"
        check_float(name, mod, (*kinds, nni.LinearReLU), none_is_default=True)
        inner = mod[0] if type(mod) is nni.LinearReLU else mod
        observer = _weight_observer(mod)
        if observer.dtype not in (facula.qint8, facula.float16):
            raise RuntimeError(
                f"Unsupported dtype specified for dynamic quantized Linear: {observer.dtype}"
            )
        made = cls(inner.in_features, inner.out_features, dtype=observer.dtype)
        weight = inner.weight.detach().float()
        if observer.dtype is facula.qint8:
            observer(inner.weight)
            weight = quantize_weight(weight, observer)
        made.set_weight_bias(weight, inner.bias)
        return made

    @classmethod
    def from_reference(cls, ref_qlinear):
        """From a reference layer."""
        made = cls(
            ref_qlinear.in_features, ref_qlinear.out_features, dtype=ref_qlinear.weight_dtype
        )
        made.set_weight_bias(ref_qlinear.get_quantized_weight(), ref_qlinear.bias)
        return made


def _weight_observer(mod):
    from facula.ao.quantization.qconfig import default_dynamic_qconfig

    config = mod.qconfig
    has_weight = config is not None and config.weight is not None
    return config.weight() if has_weight else default_dynamic_qconfig.weight()
