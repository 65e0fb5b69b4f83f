"""Adamax."""

from __future__ import annotations

from facula.optim._listed import ListOptimizer, kept, lr_of
from facula.optim.optimizer import _check_betas, _check_lr


class Adamax(ListOptimizer):
    """Adamax: Adam with the greatest gradient in place of the mean of squares.

    Args:
        params: iterable of parameters or of groups.
        lr: learning rate.
        betas: decay of mean and maximum.
        eps, weight_decay, foreach, maximize, differentiable, capturable: as in `Adam`.
    """

    def __init__(
        self,
        params,
        lr=2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        _check_lr(lr, False)
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        _check_betas(betas)
        if not weight_decay >= 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _buffers(self, group):
        return ["exp_avg", "exp_inf"]

    def _update(self, group, ops, counts, params, grads, means, maxima):
        beta1, beta2 = group["betas"]
        ops.lerp_(means, grads, 1 - beta1)
        ops.mul_(maxima, beta2)
        sizes = ops.add(ops.abs(grads), group["eps"])
        for maximum, size in zip(maxima, ops.maximum(kept(ops, maxima), sizes), strict=True):
            maximum.copy_(size)
        lr = lr_of(group)
        ops.addcdiv_(
            params, kept(ops, means), kept(ops, maxima), [-lr / (1 - beta1**n) for n in counts]
        )


def __getattr__(name):
    from facula.optim.functional import function_of_module

    return function_of_module(__name__, name)
