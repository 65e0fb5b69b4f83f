"""Pooling functions."""

from __future__ import annotations

import facula
from facula.nn.modules.utils import _list_with_default, _pair, _single, _triple

_nn = facula._C._nn


def max_pool1d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """Maxima of windows of a (N, C, L) input, and their positions: two Tensors."""
    return facula.max_pool1d_with_indices(
        input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode
    )


def max_pool2d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """Maxima of windows of a (N, C, H, W) input, and their positions: two Tensors."""
    return _nn.max_pool2d_with_indices(
        input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode
    )


def max_pool3d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """Maxima of windows of a (N, C, D, H, W) input, and their positions: two Tensors."""
    return _nn.max_pool3d_with_indices(
        input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode
    )


def max_pool1d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """Maxima of windows of a (N, C, L) input; with `return_indices` also their positions."""
    if return_indices:
        return max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return facula.max_pool1d(
        input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode
    )


def max_pool2d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """Maxima of windows of a (N, C, H, W) input; with `return_indices` also their positions."""
    if return_indices:
        return max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return facula.max_pool2d(
        input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode
    )


def max_pool3d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """Maxima of windows of a (N, C, D, H, W) input; with `return_indices` also their positions."""
    if return_indices:
        return max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return facula.max_pool3d(
        input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode
    )


def _fractional(op, name, ndim, input, kernel_size, output_size, output_ratio, samples):
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name}(): output_size or output_ratio must be given; got neither")
    expand = _pair if ndim == 2 else _triple
    if output_size is None:
        if len(output_ratio) > ndim:
            raise ValueError(f"{name}(): output_ratio must be a number or a tuple of {ndim}")
        sizes = input.size()[-ndim:]
        output_size = [int(n * r) for n, r in zip(sizes, expand(output_ratio), strict=False)]
    if samples is None:
        batch = 1 if input.dim() == ndim + 1 else input.size(0)
        samples = facula.rand(
            batch, input.size(-ndim - 1), ndim, dtype=input.dtype, device=input.device
        )
    return op(input, kernel_size, output_size, samples)


def fractional_max_pool2d_with_indices(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices=False,
    _random_samples=None,
):
    """Maxima of windows at random steps, and their positions: two Tensors."""
    return _fractional(
        _nn.fractional_max_pool2d,
        "fractional_max_pool2d",
        2,
        input,
        kernel_size,
        output_size,
        output_ratio,
        _random_samples,
    )


def fractional_max_pool3d_with_indices(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices=False,
    _random_samples=None,
):
    """Maxima of windows at random steps, and their positions: two Tensors."""
    return _fractional(
        _nn.fractional_max_pool3d,
        "fractional_max_pool3d",
        3,
        input,
        kernel_size,
        output_size,
        output_ratio,
        _random_samples,
    )


def fractional_max_pool2d(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices=False,
    _random_samples=None,
):
    """Maxima of windows at random steps of a (N, C, H, W) input.

    Args:
        output_size: wanted size, or None for `output_ratio` times the input's.
        return_indices: also give the positions.

    Raises:
        ValueError: neither size nor ratio.
    """
    result = fractional_max_pool2d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )
    return result if return_indices else result[0]


def fractional_max_pool3d(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices=False,
    _random_samples=None,
):
    """Maxima of windows at random steps of a (N, C, D, H, W) input; as the 2-D function."""
    result = fractional_max_pool3d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )
    return result if return_indices else result[0]


def _unpool_output_size(input, kernel_size, stride, padding, output_size):
    """The spatial size of an unpooling; `output_size` must be near the natural one.

    Raises:
        ValueError: `output_size` has a bad length or is too far from the natural size.
    """
    ndim = len(kernel_size)
    natural = [
        (n - 1) * s + k - 2 * p
        for n, s, k, p in zip(input.size()[-ndim:], stride, kernel_size, padding, strict=False)
    ]
    if output_size is None:
        return natural
    if len(output_size) == ndim + 2:
        output_size = output_size[2:]
    if len(output_size) != ndim:
        raise ValueError(
            f"max_unpool: output_size must have {ndim} or {ndim + 2} numbers; got "
            f"{len(output_size)}"
        )
    for d, (size, want, step) in enumerate(zip(output_size, natural, stride, strict=False)):
        low, high = want - step, want + step
        if not low < size < high:
            shown = [int(n) for n in output_size]
            raise ValueError(
                f'invalid output_size "{shown}" (dim {d} must be between {low} and {high})'
            )
    return output_size


def _unpool(input, kernel_size, stride, padding, output_size, expand):
    kernel_size = expand(kernel_size)
    stride = kernel_size if stride is None else expand(stride)
    padding = expand(padding)
    size = _unpool_output_size(input, kernel_size, stride, padding, output_size)
    return list(size), stride, padding


def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Put pooled values back at the positions `indices`, zeros elsewhere; returns a Tensor."""
    size, _, _ = _unpool(input, kernel_size, stride, padding, output_size, _single)
    result = _nn.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1])
    return result.squeeze(-1)


def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Put pooled values back at the positions `indices`, zeros elsewhere; returns a Tensor."""
    size, _, _ = _unpool(input, kernel_size, stride, padding, output_size, _pair)
    return _nn.max_unpool2d(input, indices, size)


def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Put pooled values back at the positions `indices`, zeros elsewhere; returns a Tensor."""
    size, stride, padding = _unpool(input, kernel_size, stride, padding, output_size, _triple)
    return _nn.max_unpool3d(input, indices, size, stride, padding)


def _power_mean(pooled, norm_type, count):
    return (facula.sign(pooled) * facula.relu(facula.abs(pooled))).mul(count).pow(1.0 / norm_type)


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of windows of a (N, C, L) input; returns a Tensor."""
    pooled = facula.avg_pool1d(
        input.pow(norm_type), kernel_size, () if stride is None else stride, 0, ceil_mode
    )
    return _power_mean(pooled, norm_type, kernel_size)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of windows of a (N, C, H, W) input; returns a Tensor."""
    height, width = _pair(kernel_size)
    pooled = _nn.avg_pool2d(
        input.pow(norm_type), kernel_size, () if stride is None else stride, 0, ceil_mode
    )
    return _power_mean(pooled, norm_type, height * width)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of windows of a (N, C, D, H, W) input; returns a Tensor."""
    depth, height, width = _triple(kernel_size)
    pooled = _nn.avg_pool3d(
        input.pow(norm_type), kernel_size, () if stride is None else stride, 0, ceil_mode
    )
    return _power_mean(pooled, norm_type, depth * height * width)


def adaptive_avg_pool2d(input, output_size):
    """Means of as many windows as `output_size` (int, or pair with None for the input's size)."""
    return _nn.adaptive_avg_pool2d(input, _list_with_default(output_size, input.size()))


def adaptive_avg_pool3d(input, output_size):
    """Means of as many windows as `output_size` (int, or triple with None for the input's)."""
    return _nn.adaptive_avg_pool3d(input, _list_with_default(output_size, input.size()))


def adaptive_max_pool1d_with_indices(input, output_size, return_indices=False):
    """Maxima of `output_size` windows of a (N, C, L) input, and their positions."""
    return facula.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool2d_with_indices(input, output_size, return_indices=False):
    """Maxima of `output_size` windows of a (N, C, H, W) input, and their positions."""
    return _nn.adaptive_max_pool2d(input, _list_with_default(output_size, input.size()))


def adaptive_max_pool3d_with_indices(input, output_size, return_indices=False):
    """Maxima of `output_size` windows of a (N, C, D, H, W) input, and their positions."""
    return _nn.adaptive_max_pool3d(input, _list_with_default(output_size, input.size()))


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """Maxima of `output_size` windows; with `return_indices` also their positions."""
    result = adaptive_max_pool1d_with_indices(input, output_size)
    return result if return_indices else result[0]


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """Maxima of `output_size` windows; with `return_indices` also their positions."""
    result = adaptive_max_pool2d_with_indices(input, output_size)
    return result if return_indices else result[0]


def adaptive_max_pool3d(input, output_size, return_indices=False):
    """Maxima of `output_size` windows; with `return_indices` also their positions."""
    result = adaptive_max_pool3d_with_indices(input, output_size)
    return result if return_indices else result[0]
