"""Losses of classification and regression."""

from __future__ import annotations

import math

import facula
from facula.nn import _reduction
from facula.nn._functional import same_as

_nn = facula._C._nn


def _warn_sizes(input, target):
    import warnings

    warnings.warn(
        "target and input should have one size, they are broadcast; got "
        f"{tuple(target.shape)} and {tuple(input.shape)}",
        stacklevel=3,
    )


@same_as(_nn.cross_entropy_loss, 2, 3)
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
        >>> logits = facula.randn(3, 5)
        >>> facula.nn.functional.cross_entropy(logits, facula.tensor([1, 0, 4])).dim()
        0
    """
    code = _reduction.resolve(reduction, size_average, reduce)
    return _nn.cross_entropy_loss(input, target, weight, code, ignore_index, label_smoothing)


def _check_linear_map(input, linear_weight, linear_bias):
    name = "linear_cross_entropy(): "
    if input.dim() not in (1, 2):
        raise RuntimeError(f"{name}input must have 1 or 2 dimensions; got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(
            f"{name}linear_weight must have 2 dimensions or more; got {linear_weight.dim()}"
        )
    if input.shape[-1] != linear_weight.shape[-1]:
        raise RuntimeError(
            f"{name}the last sizes of input and linear_weight must be equal; got "
            f"{input.shape[-1]} and {linear_weight.shape[-1]}"
        )
    if linear_weight.dim() > 2 and input.dim() == 1:
        raise RuntimeError(f"{name}linear_weight with more than 2 dimensions needs a batch")
    wanted = tuple(linear_weight.shape[:-1])
    if linear_bias is not None and tuple(linear_bias.shape) != wanted:
        raise RuntimeError(
            f"{name}linear_bias must have shape {wanted}; got {tuple(linear_bias.shape)}"
        )


def _goes_by_blocks(input, linear_weight, target, batch):
    """Whether the operator by blocks serves these: one class or one distribution per sample."""
    if linear_weight.dim() > 2 or target.requires_grad:
        return False
    if target.dtype == facula.int64 and target.dim() == len(batch):
        return True
    return target.dtype == input.dtype and tuple(target.shape) == (*batch, linear_weight.shape[0])


def _by_blocks(input, linear_weight, target, bias, weight, code, ignored, smoothing, options):
    single = input.dim() == 1
    if single:
        input, target = input.unsqueeze(0), target.unsqueeze(0)
    if facula.is_autocast_enabled(input.device.type):  # the layer before gave the lower precision
        linear_weight = linear_weight.to(input.dtype)
    loss = facula.ops.aten._linear_cross_entropy(
        input,
        linear_weight,
        target,
        None if bias is None else bias.to(input.dtype),
        None if weight is None else weight.to(input.dtype),
        code,
        ignored,
        smoothing,
        options.batch_chunk_size or 0,
        options.acc_dtype,
    )[0]
    return loss.squeeze(0) if single and loss.dim() else loss


def linear_cross_entropy(
    input,
    linear_weight,
    target,
    *,
    linear_bias=None,
    weight=None,
    reduction="mean",
    ignore_index=None,
    label_smoothing=0.0,
    options=None,
):
    """Cross entropy between a linear map of `input` and classes or class probabilities.

    Args:
        input: (in_features) or (N, in_features).
        linear_weight: (C, in_features) or (C, d1, ..., in_features).
        target: class indices () or (N, d1, ...), or probabilities (C) or (N, C, d1, ...).
        linear_bias: of linear_weight's shape without the last size, or None.
        weight: (C), or None.
        reduction: "none", "mean" or "sum".
        ignore_index: class that counts for nothing; None: -100. Not for probabilities.
        label_smoothing: in [0, 1].
        options: a `LinearCrossEntropyOptions` to go by blocks, which never hold all logits; None
            for `cross_entropy(linear(...))`, which is faster where the logits fit in memory.

    Returns:
        A Tensor: 0-dim, or with one loss per target when reduction is "none".

    Raises:
        RuntimeError: shapes that do not fit; ignore_index with probabilities.
        UserWarning: options that do not serve these arguments, which go the way of None.

    Example:
        >>> x, w = facula.randn(3, 8), facula.randn(5, 8)
        >>> facula.nn.functional.linear_cross_entropy(x, w, facula.tensor([1, 0, 4])).dim()
        0
    """
    _check_linear_map(input, linear_weight, linear_bias)
    classes, *places, features = linear_weight.shape
    batch = input.shape[:-1]
    if ignore_index is not None and tuple(target.shape) == (*batch, classes, *places):
        raise RuntimeError(
            "linear_cross_entropy(): ignore_index is for class indices, not for probabilities; "
            f"got {ignore_index}"
        )
    code = _reduction.get_enum(reduction)
    ignored = -100 if ignore_index is None else ignore_index
    settings = weight, code, ignored, label_smoothing
    if options is not None and _goes_by_blocks(input, linear_weight, target, batch):
        return _by_blocks(input, linear_weight, target, linear_bias, *settings, options)
    if options is not None:
        import warnings

        warnings.warn(
            "linear_cross_entropy(): options serve a 2-d linear_weight and targets that are int64, "
            "or probabilities of input's dtype without gradient; this call goes without them",
            stacklevel=2,
        )
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = facula.nn.functional.linear(input, linear_weight.reshape(-1, features), bias)
    logits = logits.reshape(*batch, classes, *places)
    return _nn.cross_entropy_loss(logits, target, *settings)


@same_as(_nn.nll_loss_nd, 2, 3)
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
    if weight is not None:
        return _pointwise(_nn.huber_loss, input, target, weight, None, None, reduction, delta)
    # The operator broadcasts itself, so that a 0-dim target does not decide about the dtype.
    if target.size() != input.size():
        _warn_sizes(input, target)
    return _nn.huber_loss(input, target, _reduction.get_enum(reduction), delta)


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
