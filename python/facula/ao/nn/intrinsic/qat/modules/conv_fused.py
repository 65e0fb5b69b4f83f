"""Convolution, batch normalization and ReLU that train with a fake-quantized weight."""

from __future__ import annotations

import facula
from facula import nn
from facula.ao.nn import intrinsic as nni
from facula.ao.nn import qat as nnqat
from facula.ao.nn._from_float import CONV_OPTIONS, check_float, options_of
from facula.ao.nn.qat.modules._common import check_qconfig
from facula.nn import functional as F
from facula.nn.utils.fusion import fuse_conv_bn_weights

from ._folded import FoldedNorm

__all__ = [
    "ConvBn1d",
    "ConvBnReLU1d",
    "ConvReLU1d",
    "ConvBn2d",
    "ConvBnReLU2d",
    "ConvReLU2d",
    "ConvBn3d",
    "ConvBnReLU3d",
    "ConvReLU3d",
    "update_bn_stats",
    "freeze_bn_stats",
]


class _ConvBnNd(FoldedNorm, nn.modules.conv._ConvNd, nni._FusedModule):
    """What convolutions with normalization share; the float class follows in the order of bases."""

    _version = 2
    _relu = False

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=None,
        padding_mode="zeros",
        eps=1e-05,
        momentum=0.1,
        freeze_bn=False,
        qconfig=None,
    ):
        self._FLOAT_CONV_MODULE.__init__(
            self,
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            False,
            padding_mode,
        )
        check_qconfig(qconfig)
        self.qconfig = qconfig
        self.freeze_bn = freeze_bn if self.training else True
        self.bn = self._FLOAT_BN_MODULE(out_channels, eps, momentum, True, True)
        self.weight_fake_quant = qconfig.weight()
        self.bias = nn.Parameter(facula.empty(out_channels)) if bias else None
        self._start_norm()
        # PyTorch's switch for weights whose factor may be zero.
        self._enable_slow_path_for_better_numerical_stability = False

    def _conv_bn(self, input):
        slow = self._enable_slow_path_for_better_numerical_stability
        return self._with_batch_factor(input) if slow else self._with_running_factor(input)

    def _channels(self, vector):
        return vector.reshape(1, -1, *[1] * (self.weight.dim() - 2))

    def _with_running_factor(self, input):
        """The result by the factor of the running statistics, which is then taken out again."""
        factor = self._norm_factor()
        scaled = self.weight * factor.reshape(-1, *[1] * (self.weight.dim() - 1))
        zero = facula.zeros(self.out_channels, dtype=input.dtype, device=input.device)
        result = self._conv_forward(input, self.weight_fake_quant(scaled), zero)
        result = result / self._channels(factor)
        if self.bias is not None:
            result = result + self._channels(self.bias)
        return self.bn(result)

    def _with_batch_factor(self, input):
        """The result by a second convolution with the weight as it is, for the batch's statistics."""  # noqa: E501
        bias = None if self.bias is None else self._channels(self.bias)
        zero = facula.zeros(self.out_channels, dtype=input.dtype, device=input.device)
        bn = self.bn
        if bn.training:
            plain = self._conv_forward(input, self.weight, zero)
            plain = plain if bias is None else plain + bias
            bn(plain.detach())  # the running statistics follow
            dims = [d for d in range(plain.dim()) if d != 1]
            mean = plain.mean(dims)
            var = plain.var(dims, correction=0)
        else:
            mean, var = bn.running_mean, bn.running_var
        factor = bn.weight / facula.sqrt(var + bn.eps)
        scaled = self.weight * factor.reshape(-1, *[1] * (self.weight.dim() - 1))
        result = self._conv_forward(input, self.weight_fake_quant(scaled), zero)
        offset = bn.bias - factor * (mean if self.bias is None else mean - self.bias)
        return result + self._channels(offset)

    def forward(self, input):
        """The normalized convolution."""
        result = self._conv_bn(input)
        return F.relu(result) if self._relu else result

    def _load_from_state_dict(
        self,
        state_dict,
        prefix,
        local_metadata,
        strict,
        missing_keys,
        unexpected_keys,
        error_msgs,
    ):
        version = local_metadata.get("version")
        if version is None or version == 1:
            _rename_first_version(state_dict, prefix)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From the fused float module with a configuration; parameters are shared.

        Raises:
            AssertionError: another class, or no configuration.
        """
        check_float(f"qat.{cls.__name__}", mod, cls._FLOAT_MODULE)
        conv, bn = mod[0], mod[1]
        options = options_of(conv, CONV_OPTIONS)
        made = cls(**options, eps=bn.eps, momentum=bn.momentum, qconfig=mod.qconfig)
        made.weight, made.bias = conv.weight, conv.bias
        made._take_norm(bn)
        return made

    def to_float(self):
        """A float convolution with the normalization in its weight, and a ReLU where this has one."""  # noqa: E501
        conv = self._FLOAT_CONV_MODULE(**options_of(self, CONV_OPTIONS))
        bn = self.bn
        conv.weight, conv.bias = fuse_conv_bn_weights(
            nn.Parameter(self.weight.detach()),
            None if self.bias is None else nn.Parameter(self.bias.detach()),
            bn.running_mean,
            bn.running_var,
            bn.eps,
            bn.weight,
            bn.bias,
        )
        if self._FLOAT_RELU_MODULE is None:
            return conv.train(self.training)
        fused = self._FUSED_FLOAT_MODULE(conv, self._FLOAT_RELU_MODULE())
        return fused.train(self.training)


def _rename_first_version(state_dict, prefix):
    """Names of PyTorch's first version, where the normalization was not a module of its own."""
    names = {
        "gamma": "bn.weight",
        "beta": "bn.bias",
        "running_mean": "bn.running_mean",
        "running_var": "bn.running_var",
        "num_batches_tracked": "bn.num_batches_tracked",
    }
    for old, new in names.items():
        if prefix + old in state_dict:
            state_dict[prefix + new] = state_dict.pop(prefix + old)


class ConvBn1d(_ConvBnNd, nn.Conv1d):
    """Conv1d and BatchNorm1d whose weight is rounded with the norm's factor in it.

    Args:
        eps, momentum: as nn.BatchNorm1d's. freeze_bn (bool): whether the running statistics serve
            from the begin. qconfig (QConfig): has the weight's fake quantizer. The others are
            nn.Conv1d's.
    """

    _FLOAT_BN_MODULE = nn.BatchNorm1d
    _FLOAT_RELU_MODULE = None
    _FLOAT_MODULE = nni.ConvBn1d
    _FLOAT_CONV_MODULE = nn.Conv1d


class ConvBn2d(_ConvBnNd, nn.Conv2d):
    """Conv2d and BatchNorm2d with a rounded weight; arguments as ConvBn1d's."""

    _FLOAT_BN_MODULE = nn.BatchNorm2d
    _FLOAT_RELU_MODULE = None
    _FLOAT_MODULE = nni.ConvBn2d
    _FLOAT_CONV_MODULE = nn.Conv2d


class ConvBn3d(_ConvBnNd, nn.Conv3d):
    """Conv3d and BatchNorm3d with a rounded weight; arguments as ConvBn1d's."""

    _FLOAT_BN_MODULE = nn.BatchNorm3d
    _FLOAT_RELU_MODULE = None
    _FLOAT_MODULE = nni.ConvBn3d
    _FLOAT_CONV_MODULE = nn.Conv3d


class ConvBnReLU1d(ConvBn1d):
    """Conv1d, BatchNorm1d and ReLU with a rounded weight; arguments as ConvBn1d's."""

    _relu = True
    _FLOAT_MODULE = nni.ConvBnReLU1d
    _FLOAT_RELU_MODULE = nn.ReLU
    _FUSED_FLOAT_MODULE = nni.ConvReLU1d


class ConvBnReLU2d(ConvBn2d):
    """Conv2d, BatchNorm2d and ReLU with a rounded weight; arguments as ConvBn1d's."""

    _relu = True
    _FLOAT_MODULE = nni.ConvBnReLU2d
    _FLOAT_RELU_MODULE = nn.ReLU
    _FUSED_FLOAT_MODULE = nni.ConvReLU2d


class ConvBnReLU3d(ConvBn3d):
    """Conv3d, BatchNorm3d and ReLU with a rounded weight; arguments as ConvBn1d's."""

    _relu = True
    _FLOAT_MODULE = nni.ConvBnReLU3d
    _FLOAT_RELU_MODULE = nn.ReLU
    _FUSED_FLOAT_MODULE = nni.ConvReLU3d


class ConvReLU1d(nnqat.Conv1d, nni._FusedModule):
    """Conv1d and ReLU with a rounded weight.

    Args:
        qconfig (QConfig): has the weight's fake quantizer; the others are nn.Conv1d's.
    """

    _FLOAT_MODULE = nni.ConvReLU1d
    _FLOAT_CONV_MODULE = nn.Conv1d
    _FLOAT_BN_MODULE = None
    _FLOAT_RELU_MODULE = nn.ReLU

    def forward(self, input):
        """What is positive of the convolution with the rounded weight."""
        return F.relu(super().forward(input))


class ConvReLU2d(nnqat.Conv2d, nni._FusedModule):
    """Conv2d and ReLU with a rounded weight; arguments as ConvReLU1d's."""

    _FLOAT_MODULE = nni.ConvReLU2d
    _FLOAT_CONV_MODULE = nn.Conv2d
    _FLOAT_BN_MODULE = None
    _FLOAT_RELU_MODULE = nn.ReLU

    def forward(self, input):
        """What is positive of the convolution with the rounded weight."""
        return F.relu(super().forward(input))


class ConvReLU3d(nnqat.Conv3d, nni._FusedModule):
    """Conv3d and ReLU with a rounded weight; arguments as ConvReLU1d's."""

    _FLOAT_MODULE = nni.ConvReLU3d
    _FLOAT_CONV_MODULE = nn.Conv3d
    _FLOAT_BN_MODULE = None
    _FLOAT_RELU_MODULE = nn.ReLU

    def forward(self, input):
        """What is positive of the convolution with the rounded weight."""
        return F.relu(super().forward(input))


def update_bn_stats(mod):
    """Let a fused module's normalization follow each batch, for `Module.apply`."""
    if isinstance(mod, _ConvBnNd):
        mod.update_bn_stats()


def freeze_bn_stats(mod):
    """Let a fused module's normalization use its running statistics, for `Module.apply`."""
    if isinstance(mod, _ConvBnNd):
        mod.freeze_bn_stats()
