"""Convolution layers."""

from __future__ import annotations

import math

import facula
from facula.nn import functional as F
from facula.nn import init
from facula.nn.modules.lazy import LazyModuleMixin
from facula.nn.modules.module import Module
from facula.nn.modules.utils import _keep, _pair, _reverse_repeat_tuple, _single, _triple
from facula.nn.parameter import Parameter, UninitializedParameter

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")
_PADDING_NAMES = ("same", "valid")


def _check_settings(in_channels, out_channels, groups, padding, stride, padding_mode):
    if groups <= 0:
        raise ValueError(f"groups must be positive; got {groups}")
    for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
        if channels % groups != 0:
            raise ValueError(f"groups must divide {name}; got {groups} and {channels}")
    if isinstance(padding, str):
        if padding not in _PADDING_NAMES:
            raise ValueError(
                "padding must be a number, a tuple or one of "
                f"{sorted(_PADDING_NAMES)}; got {padding!r}"
            )
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueError(f"padding='same' needs stride 1; got {stride}")
    if padding_mode not in _PADDING_MODES:
        raise ValueError(
            f"padding_mode must be one of {sorted(_PADDING_MODES)}; got {padding_mode!r}"
        )


def _total_padding(padding, dilation, kernel_size):
    """(before, after) of every dimension from the last on, as `F.pad` wants it."""
    if padding == "valid":
        return [0] * (2 * len(kernel_size))
    if padding != "same":
        return _reverse_repeat_tuple(padding, 2)
    result = []
    for d, k in zip(reversed(dilation), reversed(kernel_size), strict=False):
        total = d * (k - 1)
        result += [total // 2, total - total // 2]
    return result


class _ConvNd(Module):
    """What all convolutions share."""

    __constants__ = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups: int,
        bias: bool,
        padding_mode,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        _check_settings(in_channels, out_channels, groups, padding, stride, padding_mode)
        _keep(
            self,
            in_channels=in_channels,
            out_channels=out_channels,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            transposed=transposed,
            output_padding=output_padding,
            groups=groups,
            padding_mode=padding_mode,
        )
        self._reversed_padding_repeated_twice = _total_padding(padding, dilation, kernel_size)
        options = {"device": device, "dtype": dtype}
        channels = (
            (in_channels, out_channels // groups)
            if transposed
            else (out_channels, in_channels // groups)
        )
        self.weight = Parameter(facula.empty((*channels, *kernel_size), **options))
        if bias:
            self.bias = Parameter(facula.empty(out_channels, **options))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw weight and bias from U(-1/sqrt(fan_in), 1/sqrt(fan_in))."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is None:
            return
        fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
        if fan_in != 0:
            bound = 1 / math.sqrt(fan_in)
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self):
        """The settings that are not default."""
        ones, zeros = (1,) * len(self.kernel_size), (0,) * len(self.kernel_size)
        parts = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        ]
        if self.padding != (0,) * len(self.padding):
            parts.append(f"padding={self.padding}")
        if self.dilation != ones:
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != zeros:
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")

    def _convolve(self, op, input, weight, bias):
        d = self.__dict__
        if d["padding_mode"] == "zeros":
            return op(input, weight, bias, d["stride"], d["padding"], d["dilation"], d["groups"])
        padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        zeros = (0,) * len(self.kernel_size)
        return op(padded, weight, bias, self.stride, zeros, self.dilation, self.groups)


class _Conv(_ConvNd):
    """A convolution over as many dimensions as `_expand` makes."""

    _expand = staticmethod(_single)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: str | int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device=None,
        dtype=None,
    ) -> None:
        expand = self._expand
        padding = padding if isinstance(padding, str) else expand(padding)
        kernel_size = expand(kernel_size)
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            expand(stride),
            padding,
            expand(dilation),
            False,
            (0,) * len(kernel_size),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input, weight, bias):
        return self._convolve(self._op(), input, weight, bias)

    def forward(self, input: facula.Tensor) -> facula.Tensor:
        """Convolve `input`, (N, C, *) or (C, *)."""
        return self._conv_forward(input, self.weight, self.bias)


_DOC = """{d}-D convolution of a (N, C, {size}) input.

    Args:
        in_channels, out_channels: numbers of channels.
        kernel_size, stride, dilation: ints, or one per dimension.
        padding: int, one per dimension, "same" or "valid".
        groups: blocks of channels that do not mix.
        bias: whether there is a bias.
        padding_mode: "zeros", "reflect", "replicate" or "circular".
        device, dtype: of the parameters.

    Raises:
        ValueError: settings that do not fit.
    """


class Conv1d(_Conv):
    __doc__ = _DOC.format(d=1, size="L")

    @staticmethod
    def _op():
        return F.conv1d


class Conv2d(_Conv):
    __doc__ = _DOC.format(d=2, size="H, W")
    _expand = staticmethod(_pair)

    @staticmethod
    def _op():
        return F.conv2d


class Conv3d(_Conv):
    __doc__ = _DOC.format(d=3, size="D, H, W")
    _expand = staticmethod(_triple)

    @staticmethod
    def _op():
        return F.conv3d


class _ConvTransposeNd(_ConvNd):
    """A transposed convolution over as many dimensions as `_expand` makes."""

    _expand = staticmethod(_single)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups: int = 1,
        bias: bool = True,
        dilation: int = 1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(
                f"{type(self).__name__}: padding_mode must be 'zeros'; got {padding_mode!r}"
            )
        expand = self._expand
        super().__init__(
            in_channels,
            out_channels,
            expand(kernel_size),
            expand(stride),
            expand(padding),
            expand(dilation),
            True,
            expand(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(
        self, input, output_size, stride, padding, kernel_size, num_spatial_dims, dilation=None
    ):
        """The padding that gives `output_size`. Raises ValueError when none does."""
        if output_size is None:
            return _single(self.output_padding)
        n = num_spatial_dims
        leading = input.dim() - n
        if len(output_size) == leading + n:
            output_size = output_size[leading:]
        if len(output_size) != n:
            raise ValueError(
                f"ConvTranspose{n}d: output_size must have {n} or {leading + n} numbers; got "
                f"{len(output_size)}"
            )
        dilation = (1,) * n if dilation is None else dilation
        least = [
            (input.size(d + leading) - 1) * stride[d]
            - 2 * padding[d]
            + dilation[d] * (kernel_size[d] - 1)
            + 1
            for d in range(n)
        ]
        most = [low + s - 1 for low, s in zip(least, stride, strict=False)]
        if any(
            not low <= size <= high
            for size, low, high in zip(output_size, least, most, strict=True)
        ):
            raise ValueError(
                f"output_size must be from {least} to {most} for input size "
                f"{tuple(input.size()[2:])}; got {output_size}"
            )
        return [size - low for size, low in zip(output_size, least, strict=True)]

    def forward(self, input: facula.Tensor, output_size: list[int] | None = None) -> facula.Tensor:
        """Convolve `input`, (N, C, *) or (C, *); `output_size` picks among possible sizes."""
        n = len(self.kernel_size)
        output_padding = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, n, self.dilation
        )
        return self._op()(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            output_padding,
            self.groups,
            self.dilation,
        )


_TRANSPOSE_DOC = """{d}-D transposed convolution (the gradient of a convolution) of (N, C, {size}).

    Args:
        in_channels, out_channels: numbers of channels.
        kernel_size, stride, padding, dilation: ints, or one per dimension.
        output_padding: size added at one side of the output.
        groups: blocks of channels that do not mix.
        bias: whether there is a bias.
        padding_mode: "zeros".
        device, dtype: of the parameters.

    Raises:
        ValueError: settings that do not fit.
    """


class ConvTranspose1d(_ConvTransposeNd):
    __doc__ = _TRANSPOSE_DOC.format(d=1, size="L")

    @staticmethod
    def _op():
        return F.conv_transpose1d


class ConvTranspose2d(_ConvTransposeNd):
    __doc__ = _TRANSPOSE_DOC.format(d=2, size="H, W")
    _expand = staticmethod(_pair)

    @staticmethod
    def _op():
        return F.conv_transpose2d


class ConvTranspose3d(_ConvTransposeNd):
    __doc__ = _TRANSPOSE_DOC.format(d=3, size="D, H, W")
    _expand = staticmethod(_triple)

    @staticmethod
    def _op():
        return F.conv_transpose3d


class _LazyConvXdMixin(LazyModuleMixin):
    """Finds `in_channels` at the first call."""

    def _make_lazy(self, out_channels, bias, device, dtype):
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self):
        """Draw the parameters, once their shapes are known."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input, *args, **kwargs):
        """Give the parameters the shapes that `input` asks for."""
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError(
                f"groups must divide in_channels; got {self.groups} and {self.in_channels}"
            )
        channels = (
            (self.in_channels, self.out_channels // self.groups)
            if self.transposed
            else (self.out_channels, self.in_channels // self.groups)
        )
        self.weight.materialize((*channels, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self, input):
        spatial = len(self.kernel_size)
        if input.dim() not in (spatial + 1, spatial + 2):
            raise RuntimeError(
                f"{type(self).__name__}: input must have {spatial + 1} dimensions, or "
                f"{spatial + 2} with a batch; got {tuple(input.shape)}"
            )
        return input.shape[1] if input.dim() == spatial + 2 else input.shape[0]


class _LazyConv(_LazyConvXdMixin):
    def __init__(
        self,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: str | int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device=None,
        dtype=None,
    ) -> None:
        super().__init__(
            0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype
        )
        self._make_lazy(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvXdMixin):
    def __init__(
        self,
        out_channels: int,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups: int = 1,
        bias: bool = True,
        dilation: int = 1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ) -> None:
        super().__init__(
            0,
            0,
            kernel_size,
            stride,
            padding,
            output_padding,
            groups,
            False,
            dilation,
            padding_mode,
            device,
            dtype,
        )
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """A Conv1d that finds `in_channels` at its first call."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A Conv2d that finds `in_channels` at its first call."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A Conv3d that finds `in_channels` at its first call."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A ConvTranspose1d that finds `in_channels` at its first call."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A ConvTranspose2d that finds `in_channels` at its first call."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A ConvTranspose3d that finds `in_channels` at its first call."""

    cls_to_become = ConvTranspose3d
