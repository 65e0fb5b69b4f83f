"""Rules of the jagged layout: what modules of facula.nn call, beside products."""

from __future__ import annotations

import facula

from .base import values_of
from .ops import check_nested, check_plain, rule, wrapped


@rule("layer_norm rms_norm", "the normalized dimensions come after the ragged one")
def _layer_norm(func, input, normalized_shape, weight=None, bias=None, *rest, **kwargs):
    name = func.__name__
    check_plain(name, weight=weight, bias=bias)
    check_nested(name, input)
    shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    if len(shape) > input.dim() - 1 - input._spec.ragged_idx:
        raise RuntimeError(
            f"{name}(): normalized_shape must be of dimensions after the ragged one; got {shape} "
            f"for an input of shape {tuple(input.shape)}"
        )
    values = func(values_of(input), shape, weight, bias, *rest, **kwargs)
    return wrapped(values, input._spec)


@rule("embedding", "jagged indices, a plain weight")
def _embedding(func, input, weight, *rest, **kwargs):
    check_plain("embedding", weight=weight)
    check_nested("embedding", input)
    return wrapped(func(values_of(input), weight, *rest, **kwargs), input._spec)


@rule("conv1d conv2d conv3d", "the values are a batch of images: the ragged dimension is 1")
def _convolution(func, input, weight, bias=None, *rest, **kwargs):
    name = func.__name__
    check_plain(name, weight=weight, bias=bias)
    check_nested(name, input)
    spec = input._spec
    if spec.lengths is not None or spec.ragged_idx != 1 or not input._values.is_contiguous():
        raise ValueError(
            f"{name}(): input must be a contiguous jagged tensor, ragged in dimension 1; got shape "
            f"{tuple(input.shape)}"
        )
    if weight.dim() != input._values.dim():
        raise RuntimeError(
            f"{name}(): a jagged input must have {weight.dim() + 1} dimensions for a weight of "
            f"{weight.dim()}; got {input.dim()}"
        )
    return wrapped(func(values_of(input), weight, bias, *rest, **kwargs), spec)


@rule("one_hot", "jagged indices")
def _one_hot(func, input, num_classes=-1):
    return wrapped(func(input._values, num_classes), input._spec)


@rule("kl_div", "two jagged tensors with the same lengths")
def _kl_div(func, input, target, *rest, **kwargs):
    check_nested("kl_div", input)
    check_nested("kl_div", target)
    if not input._spec.same_lengths(target._spec):
        raise RuntimeError(
            f"kl_div(): input and target must have the same lengths; got {tuple(input.shape)} and "
            f"{tuple(target.shape)}"
        )
    result = func(values_of(input), values_of(target), *rest, **kwargs)
    return result if result.dim() == 0 else wrapped(result, input._spec)


@rule("multi_head_attention_forward", "none")
def _multi_head_attention(func, *args, **kwargs):
    # AssertionError is PyTorch's class for it.
    raise AssertionError(
        "MultiheadAttention does not support nested tensors: use scaled_dot_product_attention"
    )


@rule("is_pinned", "all")
def _is_pinned(func, self, *args, **kwargs):
    return False


@rule("_is_any_true _is_all_true", "all")
def _is_true(func, self):
    return facula.any(self._values) if "any" in func.__name__ else facula.all(self._values)
