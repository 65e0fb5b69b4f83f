"""Norms of layers and their derivatives (Ba et al., "Layer Normalization", 2016; Ioffe and
Szegedy, "Batch Normalization", 2015; Wu and He, "Group Normalization", 2018)."""

from __future__ import annotations

import math

import facula
from facula import Tensor
from facula._decomp import register_decomposition
from facula._decomp.rounding import computation_dtype

__all__ = [
    "native_batch_norm",
    "native_batch_norm_backward",
    "native_group_norm",
    "native_layer_norm",
    "native_layer_norm_backward",
]

aten = facula.ops.aten


def _normalized(x, dims, eps):
    """Values of mean 0 and variance 1 over dimensions, with the means and inverse deviations."""
    wide = x.to(computation_dtype(x.dtype))
    mean = facula.mean(wide, dims, keepdim=True)
    centred = wide - mean
    variance = facula.mean(centred * centred, dims, keepdim=True)
    inverse = facula.rsqrt(variance + eps)
    return centred * inverse, mean, inverse


@register_decomposition(aten.native_layer_norm.default)
def native_layer_norm(input: Tensor, normalized_shape, weight, bias, eps: float):
    dims = list(range(input.dim() - len(normalized_shape), input.dim()))
    out, mean, inverse = _normalized(input, dims, eps)
    if weight is not None:
        out = out * weight
    if bias is not None:
        out = out + bias
    return out.to(input.dtype), mean.to(input.dtype), inverse.to(input.dtype)


@register_decomposition(aten.native_layer_norm_backward.default)
def native_layer_norm_backward(
    grad_out: Tensor, input: Tensor, normalized_shape, mean, rstd, weight, bias, output_mask
):
    wide = computation_dtype(input.dtype)
    axis = input.dim() - len(normalized_shape)
    inner, outer = list(range(axis, input.dim())), list(range(axis))
    count = math.prod(input.shape[axis:])
    grad, x = grad_out.to(wide), input.to(wide)
    normalized = (x - mean.to(wide)) * rstd.to(wide)
    scaled = grad if weight is None else grad * weight.to(wide)
    results = [None, None, None]
    if output_mask[0]:
        total = facula.sum(scaled, inner, keepdim=True)
        along = facula.sum(scaled * normalized, inner, keepdim=True)
        results[0] = rstd.to(wide) / count * (count * scaled - total - normalized * along)
    if output_mask[1] and weight is not None:
        product = grad * normalized
        results[1] = facula.sum(product, outer) if outer else product
    if output_mask[2] and bias is not None:
        results[2] = facula.sum(grad, outer) if outer else grad.clone()
    return tuple(None if r is None else r.to(input.dtype) for r in results)


def _by_channel(value, x):
    return value.view([1, -1] + [1] * (x.dim() - 2))


@register_decomposition(aten.native_batch_norm.default)
def native_batch_norm(
    input: Tensor, weight, bias, running_mean, running_var, training, momentum: float, eps: float
):
    dims = [d for d in range(input.dim()) if d != 1]
    if training:
        out, mean, inverse = _normalized(input, dims, eps)
        kept = input.dtype if weight is None else weight.dtype
        saved = mean.squeeze(dims).to(kept), inverse.squeeze(dims).to(kept)
        count = input.numel() / input.shape[1]
        if running_mean is not None:
            running_mean.copy_(momentum * mean.squeeze(dims) + (1 - momentum) * running_mean)
        if running_var is not None:
            unbiased = facula.var(input.to(mean.dtype), dims, correction=0)
            unbiased = unbiased * (count / (count - 1))
            running_var.copy_(momentum * unbiased + (1 - momentum) * running_var)
    else:
        wide = computation_dtype(input.dtype)
        mean = running_mean.to(wide)
        inverse = facula.rsqrt(running_var.to(wide) + eps)
        out = (input - _by_channel(mean, input)) * _by_channel(inverse, input)
        saved = input.new_zeros((0,)), input.new_zeros((0,))
    if weight is not None:
        out = out * _by_channel(weight, input)
    if bias is not None:
        out = out + _by_channel(bias, input)
    return out.to(input.dtype), *saved


@register_decomposition(aten.native_batch_norm_backward.default)
def native_batch_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    weight,
    running_mean,
    running_var,
    save_mean,
    save_invstd,
    train: bool,
    eps: float,
    output_mask,
):
    wide = computation_dtype(input.dtype)
    dims = [d for d in range(input.dim()) if d != 1]
    count = input.numel() / input.shape[1]
    mean, inverse = save_mean, save_invstd
    if not train:
        mean, inverse = running_mean, facula.rsqrt(running_var + eps)
    mean, inverse = _by_channel(mean.to(wide), input), _by_channel(inverse.to(wide), input)
    grad, centred = grad_out.to(wide), input.to(wide) - mean
    total = facula.sum(grad, dims, keepdim=True)
    along = facula.sum(grad * centred, dims, keepdim=True)
    scale = inverse if weight is None else inverse * _by_channel(weight.to(wide), input)
    if train:
        slope = along / count * inverse * inverse
        grad_input = (grad - centred * slope - total / count) * scale
    else:
        grad_input = grad * scale
    kept = input.dtype if weight is None else weight.dtype
    grad_weight = (along * inverse).view(-1).to(kept) if output_mask[1] else None
    grad_bias = total.view(-1).to(kept) if output_mask[2] else None
    grad_input = grad_input.to(input.dtype) if output_mask[0] else None
    return grad_input, grad_weight, grad_bias


@register_decomposition(aten.native_group_norm.default)
def native_group_norm(
    input: Tensor, weight, bias, N: int, C: int, HxW: int, group: int, eps: float
):
    out, mean, inverse = _normalized(input.reshape(N, group, C // group, HxW), [2, 3], eps)
    out = out.reshape(input.shape)
    if weight is not None:
        out = out * _by_channel(weight, input)
    if bias is not None:
        out = out + _by_channel(bias, input)
    saved = mean.squeeze((2, 3)).to(input.dtype), inverse.squeeze((2, 3)).to(input.dtype)
    return out.to(input.dtype), *saved
