"""Convolution or linear layer and batch normalization as one layer, for evaluation."""

from __future__ import annotations

from copy import deepcopy

import facula
from facula.nn.parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]


def _fused(layer, bn, function, **options):
    if layer.training or bn.training:
        raise AssertionError("fusion: both modules must be in evaluation mode")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("fusion: the normalization must have running statistics; got none")
    result = deepcopy(layer)
    result.weight, result.bias = function(
        result.weight,
        result.bias,
        bn.running_mean,
        bn.running_var,
        bn.eps,
        bn.weight,
        bn.bias,
        **options,
    )
    return result


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """A convolution that does what `conv` and then `bn` do.

    Args:
        conv: convolution, in evaluation mode. bn: batch normalization, in evaluation mode.
        transpose: whether `conv` is a transposed one.

    Returns:
        A new module.

    Raises:
        AssertionError: a module in training mode.

    Example:
        >>> conv, bn = facula.nn.Conv2d(1, 2, 3).eval(), facula.nn.BatchNorm2d(2).eval()
        >>> fused = facula.nn.utils.fuse_conv_bn_eval(conv, bn)
        >>> x = facula.randn(1, 1, 5, 5)
        >>> facula.allclose(fused(x), bn(conv(x)), atol=1e-6)
        True
    """
    return _fused(conv, bn, fuse_conv_bn_weights, transpose=transpose)


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """Weight and bias of the convolution that does what a convolution and a normalization do.

    Args:
        conv_w, conv_b: weight and bias (or None) of the convolution.
        bn_rm, bn_rv, bn_eps: running mean and variance, and eps, of the normalization.
        bn_w, bn_b: its weight and bias, or None.
        transpose: whether the convolution is a transposed one.

    Returns:
        A tuple of two Parameters.
    """
    weight_dtype = conv_w.dtype
    bias_dtype = weight_dtype if conv_b is None else conv_b.dtype
    conv_b = facula.zeros_like(bn_rm) if conv_b is None else conv_b
    bn_w = facula.ones_like(bn_rm) if bn_w is None else bn_w
    bn_b = facula.zeros_like(bn_rm) if bn_b is None else bn_b
    scale = bn_w * facula.rsqrt(bn_rv + bn_eps)
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    weight = (conv_w * scale.reshape(shape)).to(dtype=weight_dtype)
    bias = ((conv_b - bn_rm) * scale + bn_b).to(dtype=bias_dtype)
    return Parameter(weight, conv_w.requires_grad), Parameter(bias, conv_b.requires_grad)


def fuse_linear_bn_eval(linear, bn):
    """A linear layer that does what `linear` and then `bn` do.

    Args:
        linear: Linear, in evaluation mode.
        bn: batch normalization of as many features, or of one, in evaluation mode.

    Returns:
        A new module.

    Raises:
        AssertionError: a module in training mode, or other numbers of features.
    """
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError(
            "fuse_linear_bn_eval(): the normalization must have the features of the layer, "
            f"{linear.out_features}, or 1; got {bn.num_features}"
        )
    return _fused(linear, bn, fuse_linear_bn_weights)


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """Weight and bias of the layer that does what a linear layer and a normalization do.

    Args:
        linear_w, linear_b: weight and bias (or None) of the linear layer.
        bn_rm, bn_rv, bn_eps: running mean and variance, and eps, of the normalization.
        bn_w, bn_b: its weight and bias.

    Returns:
        A tuple of two Parameters.
    """
    weight_dtype = linear_w.dtype
    bias_dtype = weight_dtype if linear_b is None else linear_b.dtype
    linear_b = facula.zeros_like(bn_rm) if linear_b is None else linear_b
    scale = bn_w * facula.rsqrt(bn_rv + bn_eps)
    weight = (linear_w * scale.unsqueeze(-1)).to(dtype=weight_dtype)
    bias = ((linear_b - bn_rm) * scale + bn_b).to(dtype=bias_dtype)
    return Parameter(weight, linear_w.requires_grad), Parameter(bias, linear_b.requires_grad)
