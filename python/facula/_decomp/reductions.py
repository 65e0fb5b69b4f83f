"""Reductions by sums and extremes."""

from __future__ import annotations

import math

import facula
from facula import Tensor
from facula._decomp import register_decomposition
from facula._decomp.rounding import rounds_once

__all__ = [
    "aminmax",
    "count_nonzero",
    "logsumexp",
    "mean",
    "nansum",
    "std",
    "std_mean",
    "sum_all",
    "trace",
    "var_mean",
]

aten = facula.ops.aten


@register_decomposition(aten.sum.default)
def sum_all(self: Tensor, *, dtype=None):
    return (
        facula.sum(self, list(range(self.dim())), dtype=dtype) if self.dim() else _cast(self, dtype)
    )


def _cast(self, dtype):
    whole = not self.is_floating_point() and not self.is_complex()
    return self.to(dtype or (facula.int64 if whole else self.dtype), copy=True)


def _count(self, dim):
    if dim is None or len(dim) == 0:
        return self.numel()
    return math.prod(self.shape[d] for d in dim) if self.dim() else 1


@register_decomposition(aten.mean.default)
def mean_all(self: Tensor, *, dtype=None):
    return facula.sum(self, dtype=dtype) / self.numel()


@register_decomposition(aten.mean.dim)
@rounds_once
def mean(self: Tensor, dim, keepdim=False, *, dtype=None):
    dims = list(range(self.dim())) if dim is None or len(dim) == 0 else list(dim)
    return facula.sum(self, dims, keepdim, dtype=dtype) / _count(self, dims)


@register_decomposition(aten.std.correction)
@rounds_once
def std(self: Tensor, dim=None, *, correction=None, keepdim=False):
    return facula.sqrt(facula.var(self, dim, correction=_bessel(correction), keepdim=keepdim))


def _bessel(correction):
    return 1 if correction is None else correction


def _dims(self, dim):
    return list(range(self.dim())) if dim is None or len(dim) == 0 else list(dim)


@register_decomposition(aten.var_mean.correction)
def var_mean(self: Tensor, dim=None, *, correction=None, keepdim=False):
    variance = facula.var(self, dim, correction=_bessel(correction), keepdim=keepdim)
    return variance, facula.mean(self, _dims(self, dim), keepdim)


@register_decomposition(aten.std_mean.correction)
@rounds_once
def std_mean(self: Tensor, dim=None, *, correction=None, keepdim=False):
    variance, average = var_mean(self, dim, correction=correction, keepdim=keepdim)
    return facula.sqrt(variance), average


@register_decomposition(aten.logsumexp.default)
@rounds_once
def logsumexp(self: Tensor, dim, keepdim=False):
    if self.numel() == 0:
        return facula.log(facula.sum(facula.exp(self), dim, keepdim))
    most = facula.amax(self.real if self.is_complex() else self, dim, keepdim=True)
    most = facula.where(facula.abs(most) == math.inf, 0, most)
    total = facula.sum(facula.exp(self - most), dim, keepdim)
    return facula.log(total) + (most if keepdim else most.squeeze(dim))


@register_decomposition(aten.nansum.default)
def nansum(self: Tensor, dim=None, keepdim=False, *, dtype=None):
    numbers = facula.where(facula.isnan(self), 0, self).to(self.dtype)
    return facula.sum(numbers, _dims(self, dim), keepdim, dtype=dtype)


@register_decomposition(aten.count_nonzero.dim_IntList)
def count_nonzero(self: Tensor, dim):
    return facula.sum(self != 0, _dims(self, dim))


@register_decomposition(aten.aminmax.default)
def aminmax(self: Tensor, *, dim=None, keepdim=False):
    dims = list(range(self.dim())) if dim is None else [dim]
    return facula.amin(self, dims, keepdim), facula.amax(self, dims, keepdim)


@register_decomposition(aten.trace.default)
def trace(self: Tensor):
    return facula.sum(facula.diagonal(self))
