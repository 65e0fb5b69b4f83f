"""Linear and BatchNorm1d that train with a fake-quantized weight."""

from __future__ import annotations

import facula
from facula import nn
from facula.ao.nn import intrinsic as nni
from facula.ao.nn._from_float import LINEAR_OPTIONS, check_float, options_of
from facula.ao.nn.qat.modules._common import check_qconfig
from facula.nn import functional as F
from facula.nn import init
from facula.nn.utils.fusion import fuse_linear_bn_weights

from ._folded import FoldedNorm

__all__ = ["LinearBn1d"]


class LinearBn1d(FoldedNorm, nn.Linear, nni._FusedModule):
    """A linear layer and batch normalization; the weight is rounded with the norm's factor in it.

    Args:
        in_features, out_features, bias: as nn.Linear's. eps, momentum: as nn.BatchNorm1d's.
        freeze_bn (bool): whether the running statistics serve from the begin.
        qconfig (QConfig): has the weight's fake quantizer.
    """

    _FLOAT_MODULE = nni.LinearBn1d

    def __init__(
        self,
        in_features,
        out_features,
        bias=True,
        eps=1e-05,
        momentum=0.1,
        freeze_bn=False,
        qconfig=None,
    ):
        nn.Linear.__init__(self, in_features, out_features, bias)
        check_qconfig(qconfig)
        self.qconfig = qconfig
        self.freeze_bn = freeze_bn if self.training else True
        self.bn = nn.BatchNorm1d(out_features, eps, momentum, True, True)
        self.weight_fake_quant = qconfig.weight()
        self._start_norm()

    def _reset_bias(self):
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input):
        """The result (N, out) of floats (N, in)."""
        factor = self._norm_factor()
        weight = self.weight_fake_quant(self.weight * factor.reshape(-1, 1))
        zero = facula.zeros(self.out_features, dtype=weight.dtype, device=weight.device)
        result = F.linear(input, weight, zero) / factor.reshape(1, -1)
        if self.bias is not None:
            result = result + self.bias.reshape(1, -1)
        return self.bn(result)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From the fused float module with a configuration; parameters are shared.

        Raises:
            AssertionError: another class, or no configuration.
        """
        check_float(f"qat.{cls.__name__}", mod, nni.LinearBn1d)
        linear, bn = mod[0], mod[1]
        options = options_of(linear, LINEAR_OPTIONS)
        made = cls(**options, eps=bn.eps, momentum=bn.momentum, qconfig=mod.qconfig)
        made.weight, made.bias = linear.weight, linear.bias
        made._take_norm(bn)
        return made

    def to_float(self):
        """A float layer with the normalization in its weight."""
        made = nn.Linear(self.in_features, self.out_features)
        bn = self.bn
        made.weight, made.bias = fuse_linear_bn_weights(
            self.weight, self.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
        )
        return made
