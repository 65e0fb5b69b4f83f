"""Convolutions of quantized numbers, and transposed ones."""

from __future__ import annotations

import facula
from facula import nn
from facula.ao.nn import intrinsic as nni
from facula.ao.nn._from_float import CONV_OPTIONS, check_float, options_of
from facula.nn import functional as F
from facula.nn.utils.fusion import fuse_conv_bn_weights

from .utils import (
    ScaledModule,
    WeightedQuantizedModule,
    detached,
    quantize_weight,
)

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


def _by_dim(value, dims, name):
    if isinstance(value, str):
        raise RuntimeError(f"quantized convolution: expected numbers for {name}; got {value!r}")
    value = (value,) * dims if isinstance(value, int) else tuple(value)
    if len(value) != dims:
        raise RuntimeError(f"quantized convolution: expected {dims} numbers for {name}")
    return value


class _ConvNd(ScaledModule, WeightedQuantizedModule):
    """What quantized convolutions share: geometry, packed weights, states."""

    _dims = 0
    _transposed = False
    _OPTIONS = CONV_OPTIONS

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        self._init(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            0,
            groups,
            bias,
            padding_mode,
        )

    def _init(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        dilation,
        output_padding,
        groups,
        bias,
        padding_mode,
    ):
        super().__init__()
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"expected channels divisible by groups; got {in_channels}, {out_channels} "
                f"and {groups}"
            )
        if padding_mode not in ("zeros", "reflect") or (padding_mode != "zeros" and self._dims > 2):
            raise ValueError(
                f"{type(self).__name__}: padding_mode must be 'zeros', or 'reflect' in one and two "
                f"dimensions; got {padding_mode!r}"
            )
        dims = self._dims
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size = _by_dim(kernel_size, dims, "kernel_size")
        self.stride = _by_dim(stride, dims, "stride")
        self.padding = _by_dim(padding, dims, "padding")
        self.dilation = _by_dim(dilation, dims, "dilation")
        self.transposed = self._transposed
        self.output_padding = _by_dim(output_padding, dims, "output_padding")
        self.groups, self.padding_mode = groups, padding_mode
        self.scale, self.zero_point = 1.0, 0
        outer, inner = in_channels, out_channels
        if not self._transposed:
            outer, inner = out_channels, in_channels
        weight = facula._empty_affine_quantized(
            [outer, inner // groups, *self.kernel_size],
            scale=1.0,
            zero_point=0,
            dtype=facula.qint8,
        )
        self.set_weight_bias(weight, facula.zeros(out_channels) if bias else None)

    def set_weight_bias(self, w, b):
        """Pack another quantized weight and bias."""
        padding = self.padding if self.padding_mode == "zeros" else (0,) * self._dims
        geometry = (self.stride, padding)
        if self._transposed:
            geometry += (self.output_padding,)
        pack = getattr(facula.ops.quantized, f"{self._operator()}_prepack")
        self._packed_params = pack(w, b, *geometry, self.dilation, self.groups)

    @classmethod
    def _operator(cls):
        return f"conv{'_transpose' if cls._transposed else ''}{cls._dims}d"

    def _weight_bias(self):
        return self._packed_params.unpack()

    def weight(self):
        """The quantized weight."""
        return self._weight_bias()[0]

    def bias(self):
        """The float bias, or None."""
        return self._weight_bias()[1]

    def _padded(self, input):
        if input.dim() != self._dims + 2:
            raise ValueError(
                f"{type(self).__name__}: input must have {self._dims + 2} dimensions; "
                f"got {input.dim()}"
            )
        if self.padding_mode == "zeros":
            return input
        twice = [p for p in reversed(self.padding) for _ in range(2)]
        return F.pad(input, twice, mode=self.padding_mode)

    def forward(self, input):
        """The quantized result of a quantized tensor (N, C, *)."""
        run = getattr(facula.ops.quantized, self._operator())
        return run(self._padded(input), self._packed_params, self.scale, self.zero_point)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        weight, bias = self._weight_bias()
        destination[prefix + "weight"] = weight
        destination[prefix + "bias"] = bias
        super()._save_to_state_dict(destination, prefix, keep_vars)

    def _own_states(self):
        return "weight", "bias"

    def _load_own(self, states):
        if states["weight"].shape != self.weight().shape:
            raise RuntimeError(
                f"the weight has shape {tuple(states['weight'].shape)} in the checkpoint and "
                f"{tuple(self.weight().shape)} in the model"
            )
        self.set_weight_bias(states["weight"], detached(states["bias"]))

    def _get_name(self):
        return f"Quantized{type(self).__name__}"

    def extra_repr(self):
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, scale={self.scale}, zero_point={self.zero_point}"
        )
        for name, usual in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            value = getattr(self, name)
            if value != (usual,) * self._dims:
                text += f", {name}={value}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        return text if self.bias() is not None else text + ", bias=False"

    def __repr__(self):
        return f"{self._get_name()}({self.extra_repr()})"

    @classmethod
    def _made_from(cls, inner, weight_observer, output_observer):
        if weight_observer.dtype is not facula.qint8:
            raise AssertionError(
                f"Weight observer must have a dtype of qint8; got {weight_observer.dtype}"
            )
        made = cls(**options_of(inner, cls._OPTIONS))
        made.set_weight_bias(quantize_weight(inner.weight.float(), weight_observer), inner.bias)
        # Dynamic modules have no observed result: their scale stays 1.
        if output_observer is not None and output_observer.dtype is not facula.float32:
            scale, zero_point = output_observer.calculate_qparams()
            made.scale, made.zero_point = float(scale), int(zero_point)
        return made

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a prepared convolution, a fused one, or one that was trained with fake weights.

        Raises:
            AssertionError: another class, or a module without configuration.
        """
        inner, weight_observer, output_observer = _observed(cls, mod)
        if not use_precomputed_fake_quant:
            weight_observer(inner.weight)
        return cls._made_from(inner, weight_observer, output_observer)

    @classmethod
    def get_qconv(cls, mod, activation_post_process, weight_post_process=None):
        """From a float convolution and its observers.

        Args:
            mod (Module): with `qconfig`, whose observer sees the weight where none is given.
            activation_post_process (Module): of the result. weight_post_process (Module).
        """
        if weight_post_process is None:
            weight_post_process = mod.qconfig.weight()
            weight_post_process(mod.weight)
        return cls._made_from(mod, weight_post_process, activation_post_process)

    @classmethod
    def from_reference(cls, ref_qconv, output_scale, output_zero_point):
        """From a reference convolution, with the scale and zero point of results."""
        made = cls(**options_of(ref_qconv, cls._OPTIONS))
        made.set_weight_bias(ref_qconv.get_quantized_weight(), ref_qconv.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made


def _observed(cls, mod):
    """(the module with the weight, the weight's observer, the result's observer or None)"""
    if hasattr(mod, "weight_fake_quant"):
        if isinstance(mod, nni.qat.modules.conv_fused._ConvBnNd):
            bn = mod.bn
            mod.weight, mod.bias = fuse_conv_bn_weights(
                mod.weight, mod.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
            )
        return mod, mod.weight_fake_quant, mod.activation_post_process
    fused = isinstance(mod, nni._FusedModule)
    if not fused:
        check_float(f"nnq.{cls.__name__}", mod, cls._FLOAT_MODULE)
    inner = mod[0] if fused else mod
    config = getattr(inner, "qconfig", None) or mod.qconfig
    return inner, config.weight(), getattr(mod, "activation_post_process", None)


class Conv1d(_ConvNd):
    """A convolution of quint8 numbers over one dimension; arguments as `nn.Conv1d`'s.

    Example:
        >>> from facula.ao.nn.quantized import Conv1d
        >>> x = facula.quantize_per_tensor(facula.ones(1, 2, 5), 0.1, 0, facula.quint8)
        >>> Conv1d(2, 4, 3)(x).shape
        facula.Size([1, 4, 3])
    """

    _dims = 1
    _FLOAT_MODULE = nn.Conv1d


class Conv2d(_ConvNd):
    """A convolution of quint8 numbers over two dimensions; arguments as `nn.Conv2d`'s."""

    _dims = 2
    _FLOAT_MODULE = nn.Conv2d


class Conv3d(_ConvNd):
    """A convolution of quint8 numbers over three dimensions; arguments as `nn.Conv3d`'s."""

    _dims = 3
    _FLOAT_MODULE = nn.Conv3d


class _ConvTransposeNd(_ConvNd):
    """What transposed quantized convolutions share."""

    _transposed = True
    _OPTIONS = (*CONV_OPTIONS, "output_padding")

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        if padding_mode != "zeros":
            raise ValueError(
                f'Only "zeros" padding mode is supported for {type(self).__name__}; '
                f"got {padding_mode!r}"
            )
        self._init(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            output_padding,
            groups,
            bias,
            padding_mode,
        )

    @classmethod
    def from_reference(cls, ref_qconvt, output_scale, output_zero_point):
        """From a reference convolution, with the scale and zero point of results."""
        return super().from_reference(ref_qconvt, output_scale, output_zero_point)


class ConvTranspose1d(_ConvTransposeNd):
    """A transposed convolution of quint8 numbers; arguments as `nn.ConvTranspose1d`'s."""

    _dims = 1
    _FLOAT_MODULE = nn.ConvTranspose1d


class ConvTranspose2d(_ConvTransposeNd):
    """A transposed convolution of quint8 numbers; arguments as `nn.ConvTranspose2d`'s."""

    _dims = 2
    _FLOAT_MODULE = nn.ConvTranspose2d


class ConvTranspose3d(_ConvTransposeNd):
    """A transposed convolution of quint8 numbers; arguments as `nn.ConvTranspose3d`'s."""

    _dims = 3
    _FLOAT_MODULE = nn.ConvTranspose3d
