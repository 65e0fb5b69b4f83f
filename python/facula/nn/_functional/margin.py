"""Losses with a margin, and losses of embeddings."""

from __future__ import annotations

import facula
from facula.nn import _reduction

_nn = facula._C._nn


def cosine_embedding_loss(
    input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"
):
    """1 - cos for targets 1, max(0, cos - margin) for targets -1, reduced."""
    code = _reduction.resolve(reduction, size_average, reduce)
    return facula.cosine_embedding_loss(input1, input2, target, margin, code)


def hinge_embedding_loss(
    input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"
):
    """x for targets 1, max(0, margin - x) for targets -1, reduced."""
    code = _reduction.resolve(reduction, size_average, reduce)
    return facula.hinge_embedding_loss(input, target, margin, code)


def margin_ranking_loss(
    input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"
):
    """max(0, -target * (input1 - input2) + margin), reduced.

    Raises:
        RuntimeError: different numbers of dimensions.
    """
    code = _reduction.resolve(reduction, size_average, reduce)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss(): inputs and target must have as many dimensions; got "
            f"{tuple(input1.shape)}, {tuple(input2.shape)} and {tuple(target.shape)}"
        )
    return facula.margin_ranking_loss(input1, input2, target, margin, code)


def multi_margin_loss(
    input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"
):
    """Hinge loss of (N, C) scores against class indices.

    Raises:
        ValueError: `p` not 1 or 2, or weights that are not 1-D.
    """
    code = _reduction.resolve(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError(f"multi_margin_loss(): p must be 1 or 2; got {p}")
    if weight is not None and weight.dim() != 1:
        raise ValueError(f"multi_margin_loss(): weight must have 1 dimension; got {weight.dim()}")
    return _nn.multi_margin_loss(input, target, p, margin, weight, code)


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """Hinge loss of (N, C) scores against lists of classes that end with -1."""
    code = _reduction.resolve(reduction, size_average, reduce)
    return _nn.multilabel_margin_loss(input, target, code)


def multilabel_soft_margin_loss(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean"
):
    """Mean over classes of the logistic loss of (N, C) scores against 0/1 targets."""
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    _reduction.check(reduction)
    yes, no = _nn.log_sigmoid(input), _nn.log_sigmoid(-input)
    loss = -(target * yes + (1 - target) * no)
    if weight is not None:
        loss = loss * weight
    classes = input.dim() - 1
    loss = loss.sum(dim=classes) / input.size(classes)
    return loss if reduction == "none" else getattr(loss, reduction)()


def triplet_margin_loss(
    anchor,
    positive,
    negative,
    margin=1.0,
    p=2,
    eps=1e-6,
    swap=False,
    size_average=None,
    reduce=None,
    reduction="mean",
):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) with the p-norm distance.

    Raises:
        ValueError: a margin that is not positive.
    """
    code = _reduction.resolve(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"triplet_margin_loss(): margin must be positive; got {margin}")
    return facula.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, code)


def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    """The triplet loss with a distance of one's own.

    Args:
        anchor, positive, negative: Tensors with the same number of dimensions.
        distance_function: takes two tensors; `pairwise_distance` when None.
        swap: use the distance between positive and negative where it is smaller.

    Raises:
        ValueError: an unknown reduction, or a margin that is not positive.
        RuntimeError: different numbers of dimensions.
    """
    _reduction.check(reduction)
    if margin <= 0:
        raise ValueError(
            f"triplet_margin_with_distance_loss(): margin must be positive; got {margin}"
        )
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            f"anchor, positive and negative must have as many dimensions; got {anchor.ndim}, "
            f"{positive.ndim} and {negative.ndim}"
        )
    distance = facula.pairwise_distance if distance_function is None else distance_function
    near = distance(anchor, positive)
    far = distance(anchor, negative)
    if swap:
        far = facula.minimum(far, distance(positive, negative))
    loss = facula.clamp_min(margin + near - far, 0)
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.mean()
