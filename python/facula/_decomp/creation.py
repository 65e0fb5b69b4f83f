"""Tensors of one value by `full`, and others by `arange`."""

from __future__ import annotations

import facula
from facula import Tensor
from facula._decomp import register_decomposition

__all__ = [
    "empty_like",
    "eye",
    "fill_scalar",
    "fill_tensor",
    "full_like",
    "linspace",
    "new_empty",
    "new_full",
    "new_ones",
    "new_zeros",
    "ones",
    "ones_like",
    "scalar_tensor",
    "tril",
    "triu",
    "zero",
    "zeros",
    "zeros_like",
]

aten = facula.ops.aten


def _options(like, dtype, layout, device, pin_memory):
    return {
        "dtype": like.dtype if dtype is None else dtype,
        "layout": like.layout if layout is None else layout,
        "device": like.device if device is None else device,
        "pin_memory": bool(pin_memory),
    }


def _number(value, dtype):
    """0 or 1 as the dtype's kind of number."""
    return bool(value) if dtype is facula.bool else value


@register_decomposition(aten.zeros.default)
def zeros(size, *, dtype=None, layout=None, device=None, pin_memory=None):
    dtype = facula.get_default_dtype() if dtype is None else dtype
    return facula.full(size, _number(0, dtype), dtype=dtype, device=device)


@register_decomposition(aten.ones.default)
def ones(size, *, dtype=None, layout=None, device=None, pin_memory=None):
    dtype = facula.get_default_dtype() if dtype is None else dtype
    return facula.full(size, _number(1, dtype), dtype=dtype, device=device)


@register_decomposition(aten.full_like.default)
def full_like(
    self: Tensor,
    fill_value,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    memory_format=None,
):
    keeps = memory_format in (None, facula.preserve_format) and not self.is_contiguous()
    options = _options(self, dtype, layout, device, pin_memory)
    if keeps or memory_format not in (None, facula.preserve_format):
        made = facula.empty_like(self, **options, memory_format=memory_format)
        return made.fill_(fill_value)
    return facula.full(self.shape, fill_value, dtype=options["dtype"], device=options["device"])


@register_decomposition(aten.zeros_like.default)
def zeros_like(
    self: Tensor, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None
):
    value = _number(0, dtype or self.dtype)
    return full_like(self, value, dtype=dtype, device=device, memory_format=memory_format)


@register_decomposition(aten.ones_like.default)
def ones_like(
    self: Tensor, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None
):
    value = _number(1, dtype or self.dtype)
    return full_like(self, value, dtype=dtype, device=device, memory_format=memory_format)


@register_decomposition(aten.empty_like.default)
def empty_like(
    self: Tensor, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None
):
    options = _options(self, dtype, layout, device, pin_memory)
    if memory_format in (None, facula.preserve_format):
        return facula.empty_strided(self.shape, _dense_strides(self), **options)
    return facula.empty(self.shape, **options, memory_format=memory_format)


def _dense_strides(x):
    """Strides without gaps in the order of dimensions that a tensor has in memory."""
    order = sorted(range(x.dim()), key=lambda d: (x.stride(d), x.shape[d]))
    strides, step = [0] * x.dim(), 1
    for d in order:
        strides[d], step = step, step * max(x.shape[d], 1)
    if x.is_contiguous() or 0 in x.stride():
        step = 1
        for d in reversed(range(x.dim())):
            strides[d], step = step, step * max(x.shape[d], 1)
    return strides


@register_decomposition(aten.new_empty.default)
def new_empty(self: Tensor, size, *, dtype=None, layout=None, device=None, pin_memory=None):
    return facula.empty(size, **_options(self, dtype, layout, device, pin_memory))


@register_decomposition(aten.new_full.default)
def new_full(
    self: Tensor, size, fill_value, *, dtype=None, layout=None, device=None, pin_memory=None
):
    return facula.full(size, fill_value, **_options(self, dtype, layout, device, pin_memory))


@register_decomposition(aten.new_zeros.default)
def new_zeros(self: Tensor, size, *, dtype=None, layout=None, device=None, pin_memory=None):
    value = _number(0, dtype or self.dtype)
    return facula.full(size, value, **_options(self, dtype, layout, device, pin_memory))


@register_decomposition(aten.new_ones.default)
def new_ones(self: Tensor, size, *, dtype=None, layout=None, device=None, pin_memory=None):
    value = _number(1, dtype or self.dtype)
    return facula.full(size, value, **_options(self, dtype, layout, device, pin_memory))


@register_decomposition(aten.scalar_tensor.default)
def scalar_tensor(s, *, dtype=None, layout=None, device=None, pin_memory=None):
    dtype = facula.get_default_dtype() if dtype is None else dtype
    return facula.full((), s, dtype=dtype, device=device)


@register_decomposition(aten.fill.Scalar)
def fill_scalar(self: Tensor, value):
    return full_like(self, value)


@register_decomposition(aten.fill.Tensor)
def fill_tensor(self: Tensor, value: Tensor):
    return facula.ops.aten.copy.default(self, value)


@register_decomposition(aten.zero.default)
def zero(self: Tensor):
    return full_like(self, _number(0, self.dtype))


def _eye(n, m, dtype, device):
    rows = facula.arange(n, device=device).unsqueeze(-1)
    ones_on = rows == facula.arange(m, device=device)
    return ones_on.to(facula.get_default_dtype() if dtype is None else dtype)


@register_decomposition(aten.eye.default)
def eye(n, *, dtype=None, layout=None, device=None, pin_memory=None):
    return _eye(n, n, dtype, device)


@register_decomposition(aten.eye.m)
def eye_m(n, m, *, dtype=None, layout=None, device=None, pin_memory=None):
    return _eye(n, m, dtype, device)


@register_decomposition(aten.linspace.default)
def linspace(start, end, steps, *, dtype=None, layout=None, device=None, pin_memory=None):
    dtype = facula.get_default_dtype() if dtype is None else dtype
    if steps < 2:
        return facula.full((steps,), start, dtype=dtype, device=device)
    # From both ends, so that both are exact.
    steps_of = facula.arange(steps, device=device, dtype=facula.float64)
    step = (end - start) / (steps - 1)
    up, down = start + step * steps_of, end - step * (steps - 1 - steps_of)
    return facula.where(steps_of < steps / 2, up, down).to(dtype)


def _band(self, diagonal, keeps):
    rows = facula.arange(self.shape[-2], device=self.device).unsqueeze(-1)
    columns = facula.arange(self.shape[-1], device=self.device)
    return facula.where(keeps(columns - rows, diagonal), self, 0).to(self.dtype)


@register_decomposition(aten.tril.default)
def tril(self: Tensor, diagonal=0):
    return _band(self, diagonal, lambda place, k: place <= k)


@register_decomposition(aten.triu.default)
def triu(self: Tensor, diagonal=0):
    return _band(self, diagonal, lambda place, k: place >= k)
