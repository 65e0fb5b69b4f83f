"""Elementwise operators by simpler ones."""

from __future__ import annotations

import functools
import math

import facula
from facula import Tensor
from facula._decomp import register_decomposition
from facula._decomp.rounding import rounds_once

__all__ = [
    "addcdiv",
    "addcmul",
    "clamp_max",
    "clamp_min",
    "deg2rad",
    "entr",
    "frac",
    "heaviside",
    "lerp_scalar",
    "logaddexp",
    "logaddexp2",
    "masked_fill",
    "nan_to_num",
    "native_dropout",
    "native_dropout_backward",
    "rad2deg",
    "rsub",
    "sgn",
    "sinc",
    "square",
    "xlog1py",
    "xlogy",
]

aten = facula.ops.aten


@register_decomposition(aten.addcmul.default)
@rounds_once
def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value=1):
    return self + value * tensor1 * tensor2


@register_decomposition(aten.addcdiv.default)
@rounds_once
def addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value=1):
    return self + value * (tensor1 / tensor2)


@register_decomposition(aten.lerp.Scalar)
@rounds_once
def lerp_scalar(start: Tensor, end: Tensor, weight):
    if abs(weight) < 0.5:
        return start + weight * (end - start)
    return end - (end - start) * (1 - weight)


@register_decomposition(aten.rsub.Tensor)
def rsub(self: Tensor, other, alpha=1):
    return facula.sub(other, self, alpha=alpha)


@register_decomposition(aten.rsub.Scalar)
def rsub_scalar(self: Tensor, other, alpha=1):
    return -alpha * self + other


@register_decomposition(aten.square.default)
def square(self: Tensor):
    return facula.pow(self, 2)


@register_decomposition(aten.frac.default)
def frac(self: Tensor):
    return self - facula.trunc(self)


@register_decomposition(aten.deg2rad.default)
@rounds_once
def deg2rad(self: Tensor):
    return self * (math.pi / 180)


@register_decomposition(aten.rad2deg.default)
@rounds_once
def rad2deg(self: Tensor):
    return self * (180 / math.pi)


@register_decomposition(aten.clamp_min.default)
def clamp_min(self: Tensor, min):
    return facula.clamp(self, min=min)


@register_decomposition(aten.clamp_max.default)
def clamp_max(self: Tensor, max):
    return facula.clamp(self, max=max)


@register_decomposition(aten.sgn.default)
def sgn(self: Tensor):
    if not self.is_complex():
        return facula.sign(self)
    size = facula.abs(self)
    return facula.where(size == 0, 0, self / size)


@register_decomposition(aten.heaviside.default)
def heaviside(self: Tensor, values: Tensor):
    return facula.where(self == 0, values, (self > 0).to(self.dtype))


def _both_tensors(function):
    """A decorator: numbers among two arguments become tensors."""

    @functools.wraps(function)
    def run(self, other):
        like = self if isinstance(self, Tensor) else other
        dtype = like.dtype if like.is_floating_point() else facula.get_default_dtype()
        both = [
            v if isinstance(v, Tensor) else facula.full((), v, dtype=dtype, device=like.device)
            for v in (self, other)
        ]
        return function(*both)

    return run


_XLOGY = [aten.xlogy.Tensor, aten.xlogy.Scalar_Other, aten.xlogy.Scalar_Self]
_XLOG1PY = aten.special_xlog1py


@register_decomposition(_XLOGY)
@_both_tensors
@rounds_once
def xlogy(self: Tensor, other):
    product = facula.where(self == 0, 0, self * facula.log(other))
    return facula.where(facula.isnan(other), math.nan, product)


@register_decomposition([_XLOG1PY.default, _XLOG1PY.other_scalar, _XLOG1PY.self_scalar])
@_both_tensors
@rounds_once
def xlog1py(self: Tensor, other):
    product = facula.where(self == 0, 0, self * facula.log1p(other))
    return facula.where(facula.isnan(other), math.nan, product)


@register_decomposition(aten.special_entr.default)
@rounds_once
def entr(self: Tensor):
    inside = facula.where(self > 0, -self * facula.log(self), 0)
    outside = facula.where(self < 0, -math.inf, inside)
    return facula.where(facula.isnan(self), self, outside)


@register_decomposition(aten.sinc.default)
@rounds_once
def sinc(self: Tensor):
    scaled = self * math.pi
    return facula.where(self == 0, 1, facula.sin(scaled) / scaled)


def _log_of_sum(a, b, log1p, exp):
    same_infinity = facula.isinf(a) & (a == b)
    most, least = facula.maximum(a, b), facula.minimum(a, b)
    return facula.where(same_infinity, a, most + log1p(exp(least - most)))


@register_decomposition(aten.logaddexp.default)
@rounds_once
def logaddexp(self: Tensor, other: Tensor):
    return _log_of_sum(self, other, facula.log1p, facula.exp)


@register_decomposition(aten.logaddexp2.default)
@rounds_once
def logaddexp2(self: Tensor, other: Tensor):
    return _log_of_sum(self, other, lambda x: facula.log1p(x) * (1 / math.log(2)), facula.exp2)


@register_decomposition(aten.nan_to_num.default)
def nan_to_num(self: Tensor, nan=None, posinf=None, neginf=None):
    if not self.is_floating_point():
        return self.clone()
    limits = facula.finfo(self.dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    result = facula.where(facula.isnan(self), 0.0 if nan is None else nan, self)
    result = facula.where(self == math.inf, high, result)
    return facula.where(self == -math.inf, low, result)


@register_decomposition(aten.masked_fill.Scalar)
def masked_fill(self: Tensor, mask: Tensor, value):
    return facula.where(mask, value, self).to(self.dtype)


@register_decomposition(aten.masked_fill.Tensor)
def masked_fill_tensor(self: Tensor, mask: Tensor, value: Tensor):
    return facula.where(mask, value.to(self.dtype), self)


@register_decomposition(aten.native_dropout.default)
def native_dropout(input: Tensor, p: float, train):
    if not train or p == 0:
        return input, facula.ones_like(input, dtype=facula.bool)
    if p == 1:
        return facula.zeros_like(input), facula.zeros_like(input, dtype=facula.bool)
    mask = facula.rand_like(input) > p
    return mask * input * (1.0 / (1.0 - p)), mask


@register_decomposition(aten.native_dropout_backward.default)
@rounds_once
def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float):
    return grad_output * (mask.to(grad_output.dtype) * scale)
