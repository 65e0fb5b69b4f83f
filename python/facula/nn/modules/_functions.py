"""Autograd functions that modules use."""

from __future__ import annotations

import facula


class BackwardHookFunction(facula.autograd.Function):
    """Identity on every input, so that one node sees all their gradients."""

    @staticmethod
    def forward(ctx, *args):
        """Return the inputs unchanged."""
        ctx.mark_non_differentiable(*[x for x in args if not x.requires_grad])
        return args

    @staticmethod
    def backward(ctx, *args):
        """Return the gradients unchanged."""
        return args


class SyncBatchNorm(facula.autograd.Function):
    """Batch normalization of an input whose batch is spread over the ranks of a group.

    Ranks exchange each channel's mean, variance and count, and in the backward pass the two sums
    that the gradient of the input needs. Gradients of weight and bias are those of the rank's own
    part: whoever averages gradients averages them, too.
    """

    @staticmethod
    def forward(ctx, input, weight, bias, running_mean, running_var, eps, momentum, group):
        """Return the normalized input, (N, C, *); a rank's N may be 0."""
        mean, var, count = _statistics_of_ranks(input, group)
        if running_mean is not None:
            running_mean.lerp_(mean.to(running_mean.dtype), momentum)
            unbiased = var * (count / (count - 1)) if count > 1 else var
            running_var.lerp_(unbiased.to(running_var.dtype), momentum)
        ctx.save_for_backward(input, weight, mean, (var + eps).rsqrt())
        ctx.group, ctx.count, ctx.eps, ctx.has_bias = group, count, eps, bias is not None
        scales = [None if t is None else t.to(mean.dtype) for t in (weight, bias)]
        return facula.batch_norm(input, *scales, mean, var, False, 0.0, eps, False)

    @staticmethod
    def backward(ctx, grad):
        """Return the gradients of input, weight and bias."""
        input, weight, mean, inverse = ctx.saved_tensors
        shape = (1, -1) + (1,) * (input.dim() - 2)
        dims = [d for d in range(input.dim()) if d != 1]
        grad = grad.to(mean.dtype)
        centered = input.to(mean.dtype) - mean.view(shape)
        bias_grad = grad.sum(dims)
        weight_grad = (grad * centered).sum(dims) * inverse
        grads = [None] * 8
        if ctx.needs_input_grad[0]:
            sums = facula.stack([bias_grad, weight_grad])
            facula.distributed.all_reduce(sums, group=ctx.group)
            of_bias, of_weight = sums / ctx.count
            scale = inverse if weight is None else inverse * weight.to(mean.dtype)
            rest = centered * (inverse * of_weight).view(shape) + of_bias.view(shape)
            grads[0] = ((grad - rest) * scale.view(shape)).to(input.dtype)
        if weight is not None and ctx.needs_input_grad[1]:
            grads[1] = weight_grad.to(weight.dtype)
        if ctx.has_bias and ctx.needs_input_grad[2]:
            grads[2] = bias_grad.to(weight.dtype if weight is not None else bias_grad.dtype)
        return tuple(grads)


def _statistics_of_ranks(input, group):
    """Mean and biased variance of each channel over all ranks, and how many numbers they are of.

    Raises:
        ValueError: there is one number, or none, for a channel.
    """
    wide = input if input.dtype == facula.float64 else input.float()
    channels, own = input.shape[1], input.numel() // input.shape[1]
    mean = var = facula.zeros(channels, dtype=wide.dtype)
    if own:
        dims = [d for d in range(input.dim()) if d != 1]
        var, mean = facula.var_mean(wide, dims, correction=0)
    mine = facula.cat([mean, var, facula.full((1,), own, dtype=wide.dtype)])
    ranks = facula.empty(facula.distributed.get_world_size(group), mine.numel(), dtype=wide.dtype)
    facula.distributed.all_gather_into_tensor(ranks, mine, group=group)
    means, variances, counts = ranks.split([channels, channels, 1], 1)
    count = int(counts.sum().item())
    if count <= 1:
        raise ValueError(
            "SyncBatchNorm: expected more than 1 value of each channel over all ranks while "
            f"training; got {count} ({tuple(input.shape)} here)"
        )
    share = counts / count
    mean = (means * share).sum(0)
    var = ((variances + (means - mean).square()) * share).sum(0)
    return mean, var, count
