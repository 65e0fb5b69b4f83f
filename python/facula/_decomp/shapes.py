"""Views, their derivatives, and operators that move elements."""

from __future__ import annotations

import facula
from facula import Tensor
from facula._decomp import register_decomposition

__all__ = [
    "diagonal_backward",
    "index_add",
    "index_copy",
    "pixel_shuffle",
    "pixel_unshuffle",
    "roll",
    "rot90",
    "select_backward",
    "select_scatter",
    "slice_backward",
    "split",
    "stack",
    "t",
    "transpose",
    "unbind",
    "unfold_copy",
    "unsafe_split",
]

aten = facula.ops.aten


@register_decomposition(aten.t.default)
def t(self: Tensor):
    return self if self.dim() < 2 else facula.permute(self, (1, 0))


@register_decomposition(aten.transpose.int)
def transpose(self: Tensor, dim0: int, dim1: int):
    if self.dim() == 0:
        return aten.alias.default(self)
    order = list(range(self.dim()))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return facula.permute(self, order)


@register_decomposition(aten.unbind.int)
def unbind(self: Tensor, dim=0):
    return [facula.select(self, dim, i) for i in range(self.shape[dim])]


def _pieces(self, split_size, dim):
    length = self.shape[dim]
    if split_size == 0:
        return [self.narrow(dim, 0, 0)]
    starts = range(0, max(length, 1), split_size)
    return [self.narrow(dim, s, min(split_size, length - s)) for s in starts]


@register_decomposition(aten.split.Tensor)
def split(self: Tensor, split_size: int, dim=0):
    return _pieces(self, split_size, dim)


@register_decomposition(aten.unsafe_split.Tensor)
def unsafe_split(self: Tensor, split_size: int, dim=0):
    return _pieces(self, split_size, dim)


@register_decomposition(aten.stack.default)
def stack(tensors, dim=0):
    place = dim if dim >= 0 else dim + tensors[0].dim() + 1
    return facula.cat([x.unsqueeze(place) for x in tensors], place)


@register_decomposition(aten.select_scatter.default)
def select_scatter(self: Tensor, src: Tensor, dim: int, index: int):
    dim = dim % self.dim()
    place = index % self.shape[dim]
    shape = [1] * self.dim()
    shape[dim] = -1
    chosen = facula.arange(self.shape[dim], device=self.device).view(shape) == place
    return facula.where(chosen, src.unsqueeze(dim), self)


@register_decomposition(aten.select_backward.default)
def select_backward(grad_output: Tensor, input_sizes, dim: int, index: int):
    return facula.select_scatter(grad_output.new_zeros(input_sizes), grad_output, dim, index)


@register_decomposition(aten.slice_backward.default)
def slice_backward(grad_output: Tensor, input_sizes, dim: int, start: int, end: int, step: int):
    zeros = grad_output.new_zeros(input_sizes)
    return facula.slice_scatter(zeros, grad_output, dim, start, end, step)


@register_decomposition(aten.diagonal_backward.default)
def diagonal_backward(grad_output: Tensor, input_sizes, offset: int, dim1: int, dim2: int):
    zeros = grad_output.new_zeros(input_sizes)
    return facula.diagonal_scatter(zeros, grad_output, offset, dim1, dim2)


@register_decomposition(aten.roll.default)
def roll(self: Tensor, shifts, dims=()):
    if not dims:
        return roll(self.flatten(), shifts, [0]).view(self.shape)
    result = self.clone()
    for shift, dim in zip(shifts, dims, strict=True):
        length = self.shape[dim]
        if length:
            place = (facula.arange(length, device=self.device) - shift) % length
            result = result.index_select(dim, place)
    return result


@register_decomposition(aten.rot90.default)
def rot90(self: Tensor, k=1, dims=(0, 1)):
    a, b = dims
    turns = k % 4
    if turns == 1:
        return facula.flip(self, (b,)).transpose(a, b)
    if turns == 2:
        return facula.flip(self, (a, b))
    if turns == 3:
        return facula.flip(self, (a,)).transpose(a, b)
    return self.clone(memory_format=facula.contiguous_format)


@register_decomposition(aten.pixel_shuffle.default)
def pixel_shuffle(self: Tensor, upscale_factor: int):
    *batch, c, h, w = self.shape
    r, n = upscale_factor, len(batch)
    out = self.reshape(*batch, c // (r * r), r, r, h, w)
    out = out.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return out.reshape(*batch, c // (r * r), h * r, w * r)


@register_decomposition(aten.pixel_unshuffle.default)
def pixel_unshuffle(self: Tensor, downscale_factor: int):
    *batch, c, h, w = self.shape
    r, n = downscale_factor, len(batch)
    out = self.reshape(*batch, c, h // r, r, w // r, r)
    out = out.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return out.reshape(*batch, c * r * r, h // r, w // r)


def _at(index, dim):
    return [None] * dim + [index]


@register_decomposition(aten.index_add.default)
def index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha=1):
    if self.dim() == 0:
        return index_add(self.view(1), 0, index.view(-1), source.view(-1), alpha=alpha).view(())
    source = source if alpha == 1 else source * alpha
    places = _at(index, dim % self.dim())
    return aten.index_put.default(self, places, source, True)


@register_decomposition(aten.index_copy.default)
def index_copy(self: Tensor, dim: int, index: Tensor, source: Tensor):
    if self.dim() == 0:
        return index_copy(self.view(1), 0, index.view(-1), source.view(-1)).view(())
    return aten.index_put.default(self, _at(index, dim % self.dim()), source)


@register_decomposition(aten.unfold_copy.default)
def unfold_copy(self: Tensor, dimension: int, size: int, step: int):
    return self.unfold(dimension, size, step).clone(memory_format=facula.contiguous_format)
