"""Linear and ReLU that train with a fake-quantized weight."""

from __future__ import annotations

from facula import nn
from facula.ao.nn import intrinsic as nni
from facula.ao.nn import qat as nnqat
from facula.nn import functional as F

__all__ = ["LinearReLU"]


class LinearReLU(nnqat.Linear, nni._FusedModule):
    """A linear layer with a rounded weight, and what is positive of its result.

    Args:
        in_features, out_features, bias: as nn.Linear's. qconfig (QConfig): has the weight's fake
            quantizer.
    """

    _FLOAT_MODULE = nni.LinearReLU

    def __init__(self, in_features, out_features, bias=True, qconfig=None):
        super().__init__(in_features, out_features, bias, qconfig)

    def forward(self, input):
        """The result (*, out) of floats (*, in)."""
        return F.relu(F.linear(input, self.weight_fake_quant(self.weight), self.bias))

    def to_float(self):
        """The two float modules as one, with copies of the parameters."""
        linear = nn.Linear(self.in_features, self.out_features, self.bias is not None)
        linear.weight = nn.Parameter(self.weight.detach())
        if self.bias is not None:
            linear.bias = nn.Parameter(self.bias.detach())
        return nni.LinearReLU(linear, nn.ReLU())
