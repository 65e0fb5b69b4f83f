"""A linear layer that trains with a fake-quantized weight."""

from __future__ import annotations

import facula  # noqa: F401  (examples)
from facula import nn
from facula.ao.nn._from_float import LINEAR_OPTIONS, check_float, options_of
from facula.ao.nn.intrinsic import LinearReLU
from facula.nn import functional as F
from facula.nn.utils.parametrize import (
    is_parametrized,
    transfer_parametrizations_and_params,
)

from ._common import check_qconfig

__all__ = ["Linear"]


class Linear(nn.Linear):
    """A linear layer whose weight is rounded as quantization will round it.

    Args:
        in_features, out_features, bias: as nn.Linear's. qconfig (QConfig): has the weight's fake
            quantizer.

    Example:
        >>> from facula.ao import quantization
        >>> qconfig = quantization.get_default_qat_qconfig()
        >>> facula.ao.nn.qat.Linear(2, 3, qconfig=qconfig)(facula.ones(1, 2)).shape
        facula.Size([1, 3])
    """

    _FLOAT_MODULE = nn.Linear

    def __init__(self, in_features, out_features, bias=True, qconfig=None, device=None, dtype=None):
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)
        check_qconfig(qconfig)
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight(factory_kwargs={"device": device, "dtype": dtype})

    def forward(self, input):
        """The result (*, out) of floats (*, in)."""
        return F.linear(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a float layer with a configuration, or one with a ReLU; parameters are shared.

        Raises:
            AssertionError: another class, or no configuration.
        """
        check_float(f"qat.{cls.__name__}", mod, cls._FLOAT_MODULE)
        inner = mod[0] if type(mod) is LinearReLU else mod
        made = cls(**options_of(inner, LINEAR_OPTIONS), qconfig=mod.qconfig)
        for name in ("weight", "bias"):
            if is_parametrized(inner, name):
                transfer_parametrizations_and_params(inner, made, name)
            else:
                setattr(made, name, getattr(inner, name))
        return made

    def to_float(self):
        """A float layer with copies of the parameters."""
        made = nn.Linear(**options_of(self, LINEAR_OPTIONS))
        made.weight = nn.Parameter(self.weight.detach())
        if self.bias is not None:
            made.bias = nn.Parameter(self.bias.detach())
        return made.train(self.training)
