"""Products with a sum in one operator, as a product and a sum."""

from __future__ import annotations

import facula
from facula import Tensor
from facula._decomp import register_decomposition
from facula._decomp.rounding import rounds_once

__all__ = [
    "addbmm",
    "addmm",
    "addmv",
    "addr",
    "baddbmm",
    "dot",
    "embedding",
    "embedding_dense_backward",
    "mv",
    "vdot",
]

aten = facula.ops.aten


def _scaled_sum(self, product, beta, alpha):
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    return (self if beta == 1 else self * beta) + product


@register_decomposition(aten.addmm.default)
@rounds_once
def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta=1, alpha=1):
    return _scaled_sum(self, facula.mm(mat1, mat2), beta, alpha)


@register_decomposition(aten.addmv.default)
@rounds_once
def addmv(self: Tensor, mat: Tensor, vec: Tensor, *, beta=1, alpha=1):
    return _scaled_sum(self, facula.mv(mat, vec), beta, alpha)


@register_decomposition(aten.addr.default)
@rounds_once
def addr(self: Tensor, vec1: Tensor, vec2: Tensor, *, beta=1, alpha=1):
    return _scaled_sum(self, vec1.unsqueeze(-1) * vec2, beta, alpha)


@register_decomposition(aten.baddbmm.default)
@rounds_once
def baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta=1, alpha=1):
    return _scaled_sum(self, facula.bmm(batch1, batch2), beta, alpha)


@register_decomposition(aten.addbmm.default)
@rounds_once
def addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta=1, alpha=1):
    return _scaled_sum(self, facula.bmm(batch1, batch2).sum(0), beta, alpha)


@register_decomposition(aten.mv.default)
@rounds_once
def mv(self: Tensor, vec: Tensor):
    return (self * vec).sum(1)


@register_decomposition(aten.dot.default)
@rounds_once
def dot(self: Tensor, tensor: Tensor):
    return (self * tensor).sum()


@register_decomposition(aten.vdot.default)
@rounds_once
def vdot(self: Tensor, other: Tensor):
    return (self.conj_physical() * other).sum()


@register_decomposition(aten.embedding.default)
def embedding(
    weight: Tensor, indices: Tensor, padding_idx=-1, scale_grad_by_freq=False, sparse=False
):
    if indices.dim() <= 1:
        out = weight.index_select(0, indices)
        return out.squeeze(0) if indices.dim() == 0 else out
    return weight[indices]


@register_decomposition(aten.embedding_dense_backward.default)
@rounds_once
def embedding_dense_backward(
    grad_output: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq
):
    indices = indices.long()
    rows = grad_output.new_zeros((num_weights, *grad_output.shape[indices.dim() :]))
    if scale_grad_by_freq:
        counts = indices.new_zeros((num_weights,))
        counts = counts.index_put([indices], facula.ones_like(indices), accumulate=True)
        grad_output = grad_output / counts[indices].unsqueeze(-1)
    grad = facula.where((indices == padding_idx).unsqueeze(-1), 0, grad_output)
    return rows.index_put([indices], grad, accumulate=True)
