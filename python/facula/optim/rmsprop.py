"""RMSprop."""

from __future__ import annotations

from facula.optim._listed import ListOptimizer, kept, lr_of
from facula.optim.optimizer import _check_lr, _check_nonnegative


class RMSprop(ListOptimizer):
    """RMSprop: steps divided by the root of a running mean of squares.

    Args:
        params: iterable of parameters or of groups.
        lr: learning rate.
        alpha: decay of the mean.
        eps: added to the root.
        weight_decay, momentum: floats.
        centered: subtract the squared mean of the gradient.
        capturable, foreach, maximize, differentiable: as in `Adam`.
    """

    _later_settings = {"momentum": 0, "centered": False}

    def __init__(
        self,
        params,
        lr=1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_lr(lr, False)
        _check_nonnegative(epsilon=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "capturable": capturable,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
            },
        )

    def _buffers(self, group):
        return (
            ["square_avg"]
            + ["momentum_buffer"] * (group["momentum"] > 0)
            + ["grad_avg"] * group["centered"]
        )

    def _update(self, group, ops, counts, params, grads, squares, *rest):
        rest = list(rest)
        alpha, lr = group["alpha"], lr_of(group)
        ops.mul_(squares, alpha)
        ops.addcmul_(squares, grads, grads, 1 - alpha)
        variance = kept(ops, squares)
        if group["centered"]:
            means = rest.pop()
            ops.lerp_(means, grads, 1 - alpha)
            variance = ops.addcmul(variance, kept(ops, means), kept(ops, means), -1)
        roots = ops.sqrt(variance)
        ops.add_(roots, group["eps"])
        if group["momentum"] <= 0:
            ops.addcdiv_(params, grads, roots, -lr)
            return
        buffers = rest.pop()
        ops.mul_(buffers, group["momentum"])
        ops.addcdiv_(buffers, grads, roots)
        ops.add_(params, ops.mul(buffers, -lr))


def __getattr__(name):
    from facula.optim.functional import function_of_module

    return function_of_module(__name__, name)
