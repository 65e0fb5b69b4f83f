"""Normalizations."""

from __future__ import annotations

import math

import facula
from facula.nn._functional import same_as

_nn = facula._C._nn


def _verify_batch_size(size):
    """Raise ValueError when a channel has a single value."""
    if size[0] * math.prod(size[2:]) == 1:
        raise ValueError(
            f"in training each channel must have more than one value; got input size {size}"
        )


def _verify_spatial_size(size):
    """Raise ValueError when an instance has a single spatial element."""
    if math.prod(size[2:]) == 1:
        raise ValueError(
            f"in training there must be more than one spatial element; got input size {size}"
        )


def batch_norm(
    input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
):
    """Normalize each channel over the batch.

    Args:
        input: (N, C, *).
        running_mean, running_var: (C) or None; changed in place in training.
        weight, bias: (C) or None.
        training: use the batch's own statistics.

    Returns:
        A Tensor of input's shape.

    Raises:
        ValueError: one value per channel in training; eps is negative, or zero in training.
    """
    if training:
        _verify_batch_size(input.size())
    if eps < 0 or (training and eps == 0):
        raise ValueError(
            "batch_norm(): eps must not be negative, nor zero in training; "
            f"got {eps} with training={training}"
        )
    return facula.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps, True
    )


def instance_norm(
    input,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
):
    """Normalize each channel of each instance; arguments as `batch_norm`."""
    if use_input_stats:
        _verify_spatial_size(input.size())
    return facula.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True
    )


@same_as(facula.layer_norm, 2, 5)
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Normalize over the last dimensions, whose sizes are `normalized_shape`; returns a Tensor."""
    return facula.layer_norm(input, normalized_shape, weight, bias, eps, True)


@same_as(facula.rms_norm, 2, 4)
def rms_norm(input, normalized_shape, weight=None, eps=None):
    """Divide by the root mean square over the last dimensions; returns a Tensor."""
    return facula.rms_norm(input, normalized_shape, weight, eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Normalize over groups of channels of a (N, C, *) input; returns a Tensor.

    Raises:
        RuntimeError: fewer than 2 dimensions.
        ValueError: one value per group.
    """
    if input.dim() < 2:
        raise RuntimeError(
            f"group_norm(): input must have at least 2 dimensions; got {input.dim()}"
        )
    size = input.shape
    _verify_batch_size([size[0] * size[1] // num_groups, num_groups, *size[2:]])
    return facula.group_norm(input, num_groups, weight, bias, eps, True)


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """Divide by (k + alpha * mean of squares over `size` neighbouring channels) ** beta.

    Raises:
        ValueError: fewer than 3 dimensions.
    """
    ndim = input.dim()
    if ndim < 3:
        raise ValueError(
            "Expected 3D or higher dimensionality"
            f"                          input (got {ndim} dimensions)"
        )
    if input.numel() == 0:
        return input
    squares = input.mul(input)
    before, after = size // 2, (size - 1) // 2
    if ndim == 3:
        padded = _nn.pad(squares.unsqueeze(1), (0, 0, before, after))
        mean = _nn.avg_pool2d(padded, (size, 1), stride=1).squeeze(1)
    else:
        shape = input.size()
        grouped = squares.view(shape[0], 1, shape[1], shape[2], -1)
        padded = _nn.pad(grouped, (0, 0, 0, 0, before, after))
        mean = _nn.avg_pool3d(padded, (size, 1, 1), stride=1).squeeze(1).view(shape)
    return input / mean.mul(alpha).add(k).pow(beta)


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """Divide by the p-norm along `dim`, or by `eps` where that is greater; returns a Tensor."""
    if out is None:
        return input / input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    norm = input.norm(p, dim, keepdim=True).clamp_min_(eps).expand_as(input)
    return facula.div(input, norm, out=out)
