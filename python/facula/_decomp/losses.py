"""Losses and their derivatives, by their definitions."""

from __future__ import annotations

import facula
from facula import Tensor
from facula._decomp import register_decomposition
from facula._decomp.rounding import rounds_once

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_backward",
    "huber_loss",
    "huber_loss_backward",
    "mse_loss",
    "mse_loss_backward",
    "nll_loss_backward",
    "nll_loss_forward",
    "smooth_l1_loss",
    "smooth_l1_loss_backward",
    "soft_margin_loss",
    "soft_margin_loss_backward",
]

aten = facula.ops.aten
_NONE, _MEAN, _SUM = 0, 1, 2  # numbers of reductions in the operators


def _reduced(loss, reduction):
    if reduction == _MEAN:
        return facula.mean(loss)
    return facula.sum(loss) if reduction == _SUM else loss


def _norm(self, reduction):
    return 1.0 / self.numel() if reduction == _MEAN and self.numel() else 1.0


@register_decomposition(aten.mse_loss.default)
@rounds_once
def mse_loss(self: Tensor, target: Tensor, reduction=_MEAN):
    difference = self - target
    return _reduced(difference * difference, reduction)


@register_decomposition(aten.mse_loss_backward.default)
@rounds_once
def mse_loss_backward(grad_output: Tensor, self: Tensor, target: Tensor, reduction: int):
    return 2.0 * _norm(self, reduction) * (self - target) * grad_output


@register_decomposition(aten.smooth_l1_loss.default)
@rounds_once
def smooth_l1_loss(self: Tensor, target: Tensor, reduction=_MEAN, beta=1.0):
    distance = facula.abs(self - target)
    if beta == 0:
        return _reduced(distance, reduction)
    near = 0.5 * distance * distance / beta
    return _reduced(facula.where(distance < beta, near, distance - 0.5 * beta), reduction)


@register_decomposition(aten.smooth_l1_loss_backward.default)
@rounds_once
def smooth_l1_loss_backward(
    grad_output: Tensor, self: Tensor, target: Tensor, reduction: int, beta: float
):
    difference = self - target
    slope = facula.sign(difference)
    if beta > 0:
        slope = facula.where(facula.abs(difference) < beta, difference / beta, slope)
    return slope * _norm(self, reduction) * grad_output


@register_decomposition(aten.huber_loss.default)
@rounds_once
def huber_loss(self: Tensor, target: Tensor, reduction=_MEAN, delta=1.0):
    distance = facula.abs(self - target)
    far = delta * (distance - 0.5 * delta)
    return _reduced(facula.where(distance <= delta, 0.5 * distance * distance, far), reduction)


@register_decomposition(aten.huber_loss_backward.default)
@rounds_once
def huber_loss_backward(
    grad_output: Tensor, self: Tensor, target: Tensor, reduction: int, delta: float
):
    difference = self - target
    return facula.clamp(difference, -delta, delta) * _norm(self, reduction) * grad_output


@register_decomposition(aten.soft_margin_loss.default)
@rounds_once
def soft_margin_loss(self: Tensor, target: Tensor, reduction=_MEAN):
    return _reduced(facula.log1p(facula.exp(-self * target)), reduction)


@register_decomposition(aten.soft_margin_loss_backward.default)
@rounds_once
def soft_margin_loss_backward(grad_output: Tensor, self: Tensor, target: Tensor, reduction=_MEAN):
    slope = target * (facula.sigmoid(target * self) - 1)
    return slope * _norm(self, reduction) * grad_output


@register_decomposition(aten.binary_cross_entropy.default)
@rounds_once
def binary_cross_entropy(self: Tensor, target: Tensor, weight=None, reduction=_MEAN):
    # Logarithms of small numbers are cut off at -100, so that losses stay finite.
    low = facula.full((), -100, dtype=self.dtype, device=self.device)
    yes = facula.maximum(facula.log(self), low)
    no = facula.maximum(facula.log1p(-self), low)
    loss = (target - 1) * no - target * yes
    return _reduced(loss if weight is None else loss * weight, reduction)


@register_decomposition(aten.binary_cross_entropy_backward.default)
@rounds_once
def binary_cross_entropy_backward(
    grad_output: Tensor, self: Tensor, target: Tensor, weight=None, reduction=_MEAN
):
    slope = (self - target) / facula.clamp(self * (1 - self), min=1e-12)
    slope = grad_output * slope * _norm(self, reduction)
    return slope if weight is None else slope * weight


def _class_dim(self):
    return 0 if self.dim() < 2 else 1


def _class_weights(weight, self):
    shape = [1] * self.dim()
    shape[_class_dim(self)] = -1
    return weight.view(shape)


@register_decomposition(aten.nll_loss_forward.default)
@rounds_once
def nll_loss_forward(self: Tensor, target: Tensor, weight, reduction: int, ignore_index: int):
    dim = _class_dim(self)
    picked_weight = None
    kept = target != ignore_index
    classes = facula.where(kept, target, 0).unsqueeze(dim)
    if weight is not None:
        weights = _class_weights(weight, self).expand(self.shape)
        self = self * weights
        picked_weight = weights.gather(dim, classes).squeeze(dim)
    loss = facula.where(kept, -self.gather(dim, classes).squeeze(dim), 0)
    if reduction == _NONE:
        return loss, self.new_full((), 0.0)
    total = kept.to(self.dtype) if weight is None else facula.where(kept, picked_weight, 0)
    total = facula.sum(total)
    loss = facula.sum(loss)
    return (loss / total if reduction == _MEAN else loss), total


@register_decomposition(aten.nll_loss_backward.default)
@rounds_once
def nll_loss_backward(
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    weight,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
):
    dim = _class_dim(self)
    kept = (target != ignore_index).unsqueeze(dim)
    classes = facula.where(kept, target.unsqueeze(dim), 0)
    grad = grad_output / total_weight if reduction == _MEAN else grad_output
    if reduction == _NONE and grad.dim() > 0 and self.dim() > 1:
        grad = grad.unsqueeze(dim)
    slope = facula.scatter(facula.zeros_like(self), dim, classes, -1.0)
    if weight is not None:
        slope = slope * _class_weights(weight, self)
    return slope * facula.where(kept, grad, 0)
