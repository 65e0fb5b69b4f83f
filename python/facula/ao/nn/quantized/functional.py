"""Functions of quantized tensors."""

from __future__ import annotations

import warnings

import facula
from facula.nn import functional as F

__all__ = [
    "avg_pool2d",
    "avg_pool3d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "conv1d",
    "conv2d",
    "conv3d",
    "interpolate",
    "linear",
    "max_pool1d",
    "max_pool2d",
    "celu",
    "leaky_relu",
    "hardtanh",
    "hardswish",
    "threshold",
    "elu",
    "hardsigmoid",
    "clamp",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]


def _check(input, name):
    if not input.is_quantized:
        raise ValueError(f"Input to 'quantized.{name}' must be quantized!")


def _of_integers(function, input, *args):
    """A mean of the integers, so that ties are rounded as integers are, not as their floats."""
    scale, zero_point = input.q_scale(), input.q_zero_point()
    means = function(input.int_repr().float() - zero_point, *args)
    integers = (means + zero_point).round().to(input.int_repr().dtype)
    return facula._make_per_tensor_quantized_tensor(integers, scale, zero_point)


def avg_pool2d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    """Means of windows of a quantized tensor (N, C, H, W), with its scale and zero point."""
    _check(input, "avg_pool2d")
    options = (padding, ceil_mode, count_include_pad, divisor_override)
    return _of_integers(F.avg_pool2d, input, kernel_size, stride or kernel_size, *options)


def avg_pool3d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    """Means of windows of a quantized tensor (N, C, D, H, W), with its scale and zero point."""
    _check(input, "avg_pool3d")
    options = (padding, ceil_mode, count_include_pad, divisor_override)
    return _of_integers(F.avg_pool3d, input, kernel_size, stride or kernel_size, *options)


def adaptive_avg_pool2d(input, output_size):
    """Means of windows that give `output_size`, of a quantized tensor (N, C, H, W)."""
    _check(input, "functional.adaptive_avg_pool2d")
    return _of_integers(F.adaptive_avg_pool2d, input, output_size)


def adaptive_avg_pool3d(input, output_size):
    """Means of windows that give `output_size`, of a quantized tensor (N, C, D, H, W)."""
    _check(input, "functional.adaptive_avg_pool3d")
    return _of_integers(F.adaptive_avg_pool3d, input, output_size)


def _conv(
    dims, input, weight, bias, stride, padding, dilation, groups, padding_mode, scale, zero, dtype
):
    name = f"conv{dims}d(): "
    if padding_mode != "zeros":
        raise NotImplementedError(f"{name}padding_mode must be 'zeros'; got {padding_mode!r}")
    for what, given, wanted in (
        ("input", input.dtype, facula.quint8),
        ("weight", weight.dtype, facula.qint8),
        ("the result", dtype, facula.quint8),
    ):
        if given is not wanted:
            raise NotImplementedError(f"{name}{what} must be of {wanted}; got {given}")
    if input.ndim != dims + 2:
        raise ValueError(f"{name}input must have {dims + 2} dimensions; got {input.ndim}")
    geometry = [
        (g,) * dims if isinstance(g, int) else tuple(g) for g in (stride, padding, dilation)
    ]
    quantized = facula.ops.quantized
    packed = getattr(quantized, f"conv{dims}d_prepack")(weight, bias, *geometry, groups)
    return getattr(quantized, f"conv{dims}d")(input, packed, scale, zero)


def _convolution(dims, shape):
    def conv(
        input,
        weight,
        bias,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        padding_mode="zeros",
        scale=1.0,
        zero_point=0,
        dtype=facula.quint8,
    ):
        rest = (stride, padding, dilation, groups, padding_mode, scale, zero_point, dtype)
        return _conv(dims, input, weight, bias, *rest)

    conv.__name__ = conv.__qualname__ = f"conv{dims}d"
    conv.__doc__ = f"""A convolution of a quint8 tensor {shape} with a qint8 weight.

    Args:
        scale (float), zero_point (int), dtype: of the result. The others are nn.functional's.

    Raises:
        NotImplementedError: another dtype, or padding with other values than zero (PyTorch's
            kernels take no others either).
        ValueError: input of another number of dimensions.

    Example:
        >>> from facula.ao.nn.quantized import functional as qF
        >>> quantize = facula.quantize_per_tensor
        >>> x = quantize(facula.ones({", ".join("1" * (dims + 1))}, 3), 0.1, 0, facula.quint8)
        >>> w = quantize(facula.ones({", ".join("1" * (dims + 1))}, 2), 0.1, 0, facula.qint8)
        >>> qF.conv{dims}d(x, w, None, scale=0.1).int_repr().flatten()
        tensor([20, 20], dtype=facula.uint8)
    """
    return conv


conv1d = _convolution(1, "(N, C, L)")
conv2d = _convolution(2, "(N, C, H, W)")
conv3d = _convolution(3, "(N, C, D, H, W)")


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """A quantized tensor at another size, with its scale and zero point."""
    _check(input, "interpolate")
    return F.interpolate(input, size, scale_factor, mode, align_corners)


def linear(input, weight, bias=None, scale=None, zero_point=None):
    """A linear layer of a quint8 tensor (*, in) with a qint8 weight (out, in).

    Args:
        scale (float), zero_point (int): of the result; the input's where they are not given.
    """
    scale = input.q_scale() if scale is None else scale
    zero_point = input.q_zero_point() if zero_point is None else zero_point
    packed = facula.ops.quantized.linear_prepack(weight, bias)
    return facula.ops.quantized.linear(input, packed, scale, zero_point)


def _check_no_indices(name, return_indices):
    if return_indices:
        # Nor do PyTorch's quantized pools give positions.
        raise NotImplementedError(f"{name}(): quantized pools give values only; got return_indices")


def max_pool1d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode=False,
    return_indices=False,
):
    """The greatest of each window of a quantized tensor (N, C, L)."""
    _check_no_indices("max_pool1d", return_indices)
    rows = [(1, g[0] if isinstance(g, tuple) else g) for g in (kernel_size, stride or kernel_size)]
    padding, dilation = (p[0] if isinstance(p, tuple) else p for p in (padding, dilation))
    pooled = F.max_pool2d(input.unsqueeze(-2), *rows, (0, padding), (1, dilation), ceil_mode)
    return pooled.squeeze(-2)


def max_pool2d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode=False,
    return_indices=False,
):
    """The greatest of each window of a quantized tensor (N, C, H, W)."""
    _check_no_indices("max_pool2d", return_indices)
    return F.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


def celu(input, scale, zero_point, alpha=1.0):
    """celu of a quantized tensor; the result has this scale and zero point."""
    _check(input, "celu")
    return facula.ops.quantized.celu(input, scale, zero_point, alpha)


def leaky_relu(input, negative_slope=0.01, inplace=False, scale=None, zero_point=None):
    """leaky_relu of a quantized tensor.

    Args:
        scale (float), zero_point (int): of the result; the input's where they are not given.
    """
    if (scale is None) != (zero_point is None):
        raise AssertionError("scale and zero_point are given together, or not at all")
    if scale is not None:
        operator = facula.ops.quantized.leaky_relu
        return operator(input, negative_slope, inplace, scale, zero_point)
    return F.leaky_relu(input, negative_slope, inplace)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """A quantized tensor clamped to [min_val, max_val]."""
    _check(input, "hardtanh")
    return F.hardtanh(input, min_val, max_val, inplace)


def hardswish(input, scale, zero_point):
    """hardswish of a quantized tensor; the result has this scale and zero point."""
    _check(input, "hardswish")
    return facula.ops.quantized.hardswish(input, scale, zero_point)


def threshold(input, threshold, value):
    """What is above the threshold, and `value` in place of the rest."""
    _check(input, "threshold")
    if threshold is None or value is None:
        raise ValueError("Input to 'threshold' must be specified!")
    return facula.ops.quantized.threshold(input, threshold, value)


def elu(input, scale, zero_point, alpha=1.0):
    """elu of a quantized tensor; the result has this scale and zero point."""
    _check(input, "elu")
    return facula.ops.quantized.elu(input, scale, zero_point, alpha)


def hardsigmoid(input, inplace=False):
    """hardsigmoid of a quantized tensor."""
    _check(input, "hardsigmoid")
    return F.hardsigmoid(input, inplace)


def clamp(input, min_, max_):
    """A quantized tensor clamped to [min_, max_]."""
    _check(input, "clamp")
    return facula.clamp(input, min_, max_)


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """The older name of interpolate."""
    warnings.warn(
        "nn.quantized.functional.upsample is deprecated; interpolate is its name now", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_bilinear(input, size=None, scale_factor=None):
    """interpolate with mode bilinear and aligned corners."""
    warnings.warn(
        "nn.quantized.functional.upsample_bilinear is deprecated; interpolate does it",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def upsample_nearest(input, size=None, scale_factor=None):
    """interpolate with mode nearest."""
    warnings.warn(
        "nn.quantized.functional.upsample_nearest is deprecated; interpolate does it",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="nearest")
