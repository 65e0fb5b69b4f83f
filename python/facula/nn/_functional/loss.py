"""Losses of classification and regression."""

from __future__ import annotations

import math

import facula
from facula.nn import _reduction

_nn = facula._C._nn


def _warn_sizes(input, target):
    import warnings

    warnings.warn(
        "target and input should have one size, they are broadcast; got "
        f"{tuple(target.shape)} and {tuple(input.shape)}",
        stacklevel=3,
    )


def cross_entropy(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
):
    """Cross entropy between logits and classes or class probabilities.

    Args:
        input: logits, (C), (N, C) or (N, C, d1, ...).
        target: class indices without the C dimension, or probabilities of input's shape.
        weight: (C), or None.
        ignore_index: class that counts for nothing.
        reduction: "none", "mean" or "sum".
        label_smoothing: in [0, 1].

    Returns:
        A Tensor: 0-dim, or with one loss per target when reduction is "none".

    Example:
        >>> F.cross_entropy(facula.randn(3, 5), facula.tensor([1, 0, 4])).dim()
        0
    """
    code = _reduction.resolve(reduction, size_average, reduce)
    return _nn.cross_entropy_loss(input, target, weight, code, ignore_index, label_smoothing)


def nll_loss(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"
):
    """Negative log likelihood of classes.

    Args:
        input: log probabilities, (C), (N, C) or (N, C, d1, ...).
        target: class indices without the C dimension.
        weight: (C), or None.
        ignore_index: class that counts for nothing.
        reduction: "none", "mean" or "sum".
    """
    code = _reduction.resolve(reduction, size_average, reduce)
    return _nn.nll_loss_nd(input, target, weight, code, ignore_index)


def binary_cross_entropy(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean"
):
    """Cross entropy between probabilities and targets of the same shape.

    Raises:
        ValueError: shapes that differ.
    """
    code = _reduction.resolve(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(
            "binary_cross_entropy(): target must have input's size; got "
            f"{tuple(target.shape)} and {tuple(input.shape)}"
        )
    if weight is not None:
        weight = weight.expand(facula.broadcast_shapes(target.size(), weight.size()))
    return _nn.binary_cross_entropy(input, target, weight, code)


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """Cross entropy between the sigmoid of `input` and targets of the same shape.

    Raises:
        ValueError: shapes that differ.
    """
    code = _reduction.resolve(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(
            "binary_cross_entropy_with_logits(): target must have input's size; got "
            f"{tuple(target.shape)} and {tuple(input.shape)}"
        )
    return facula.binary_cross_entropy_with_logits(input, target, weight, pos_weight, code)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """Kullback-Leibler divergence of log probabilities `input` from `target`.

    Args:
        reduction: "none", "mean", "sum" or "batchmean" (sum over batch size).
        log_target: whether `target` holds log probabilities.
    """
    if size_average is not None or reduce is not None:
        code = _reduction.legacy_get_enum(size_average, reduce)
    else:
        code = _reduction.get_enum("sum" if reduction == "batchmean" else reduction)
    loss = facula.kl_div(input, target, code, log_target=log_target)
    if reduction == "batchmean" and input.dim() != 0:
        return loss / input.size()[0]
    return loss


def _weighted(loss, weight, reduction):
    """Reduce an elementwise loss with weights; the mean is over the sum of the weights."""
    _reduction.check(reduction)
    loss = loss * weight
    if reduction == "none":
        return loss
    total = loss.sum()
    return total if reduction == "sum" else total / weight.sum()


def _pointwise(op, input, target, weight, size_average, reduce, reduction, *parameters):
    if target.size() != input.size():
        _warn_sizes(input, target)
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    input, target = facula.broadcast_tensors(input, target)
    if weight is None:
        return op(input, target, _reduction.get_enum(reduction), *parameters)
    if weight.size() != input.size():
        raise ValueError(
            f"weight must have input's size, {tuple(input.shape)}; got {tuple(weight.shape)}"
        )
    return _weighted(op(input, target, 0, *parameters), weight, reduction)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """(input - target)^2, reduced.

    Args:
        input, target: Tensors of the same shape.
        reduction: "none", "mean" or "sum".
        weight: Tensor of input's shape, or None.

    Raises:
        ValueError: a weight of another shape, an unknown reduction.
    """
    if (
        weight is None
        and size_average is None
        and reduce is None
        and (target.size() == input.size())
    ):
        return _nn.mse_loss(input, target, _reduction.get_enum(reduction))
    return _pointwise(_nn.mse_loss, input, target, weight, size_average, reduce, reduction)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """|input - target|, reduced; arguments as `mse_loss`."""
    return _pointwise(_nn.l1_loss, input, target, weight, size_average, reduce, reduction)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """Squared error over 2 * beta where it is below `beta`, else |error| - beta / 2."""
    if beta == 0.0:
        return _pointwise(_nn.l1_loss, input, target, None, size_average, reduce, reduction)
    return _pointwise(
        _nn.smooth_l1_loss, input, target, None, size_average, reduce, reduction, beta
    )


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """Half the squared error below `delta`, else delta * (|error| - delta / 2)."""
    return _pointwise(_nn.huber_loss, input, target, weight, None, None, reduction, delta)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """log(1 + exp(-target * input)), reduced; targets are 1 or -1."""
    return _nn.soft_margin_loss(input, target, _reduction.resolve(reduction, size_average, reduce))


def poisson_nll_loss(
    input,
    target,
    log_input=True,
    full=False,
    size_average=None,
    eps=1e-8,
    reduce=None,
    reduction="mean",
):
    """Negative log likelihood of Poisson counts.

    Args:
        input: expected counts, or their logarithm when `log_input`.
        full: add Stirling's approximation of log(target!).
        eps: keeps log(input) finite when not `log_input`.
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    _reduction.check(reduction)
    return facula.poisson_nll_loss(
        input, target, log_input, full, eps, _reduction.get_enum(reduction)
    )


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """Negative log likelihood of Gaussian targets.

    Args:
        input: expectations.
        target: Tensor of input's shape.
        var: variances, of input's shape or without (or with 1 as) its last dimension; or a float.
        full: add the constant term.
        eps: least variance.

    Raises:
        ValueError: a negative variance, a bad shape, an unknown reduction.
    """
    var = _variance(var, input)
    _reduction.check(reduction)
    # The floor is put into a copy without a record, so that the gradient passes where it holds.
    var = var.clone()
    with facula.no_grad():
        var.clamp_(min=eps)
    loss = (var.log() + (input - target).square() / var) * 0.5
    if full:
        loss = loss + math.log(math.tau) / 2
    return loss if reduction == "none" else getattr(loss, reduction)()


def _variance(var, input):
    """`var` as a Tensor that broadcasts to `input`. Raises ValueError."""
    number = not isinstance(var, facula.Tensor)
    if var < 0 if number else (var < 0).any():
        raise ValueError("gaussian_nll_loss(): var must not be negative")
    if number:
        var = facula.ones_like(input) * var
    want, have = tuple(input.shape), tuple(var.shape)
    if len(have) == len(want) - 1 and have == want[:-1]:
        return var.unsqueeze(-1)
    if len(have) != len(want) or any(v not in (1, n) for v, n in zip(have, want, strict=True)):
        raise ValueError(
            "gaussian_nll_loss(): var must have input's shape, without or with 1 as "
            f"its last size, {want}; got {have}"
        )
    return var


def ctc_loss(
    log_probs,
    targets,
    input_lengths,
    target_lengths,
    blank=0,
    reduction="mean",
    zero_infinity=False,
):
    """Connectionist temporal classification loss.

    Args:
        log_probs: (T, N, C) or (T, C).
        targets: (N, S) or all targets one after another.
        input_lengths, target_lengths: (N) Tensors or tuples.
        blank: class of the blank.
        zero_infinity: turn infinite losses into 0.
    """
    return facula.ctc_loss(
        log_probs,
        targets,
        input_lengths,
        target_lengths,
        blank,
        _reduction.get_enum(reduction),
        zero_infinity,
    )
