"""The reference linear layer."""

from __future__ import annotations

from facula import nn
from facula.nn import functional as F

from .utils import ReferenceQuantizedModule

__all__ = ["Linear"]


class Linear(nn.Linear, ReferenceQuantizedModule):
    """A linear layer of floats with a rounded weight.

    Args:
        in_features, out_features, bias_, device, dtype: as nn.Linear's.
        weight_qparams (dict): `qscheme`, `dtype`, `scale`, `zero_point` and `axis` of the weight.

    Example:
        >>> import facula.ao.nn.quantized.reference as reference
        >>> reference.Linear(4, 2)
        QuantizedLinear(Reference)(in_features=4, out_features=2, bias=True)
    """

    def __init__(
        self,
        in_features,
        out_features,
        bias_=True,
        device=None,
        dtype=None,
        weight_qparams=None,
    ):
        super().__init__(in_features, out_features, bias_, device, dtype)
        self._init_weight_qparams(weight_qparams, device)

    def _get_name(self):
        return "QuantizedLinear(Reference)"

    def forward(self, x):
        """The result (*, out) of floats (*, in)."""
        return F.linear(x, self.get_weight(), self.bias)

    @classmethod
    def from_float(cls, float_linear, weight_qparams):
        """From a float layer, with copies of its parameters."""
        linear = float_linear
        made = cls(
            linear.in_features,
            linear.out_features,
            linear.bias is not None,
            device=linear.weight.device,
            dtype=linear.weight.dtype,
            weight_qparams=weight_qparams,
        )
        return made._take_parameters(linear)
