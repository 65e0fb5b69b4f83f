"""Adadelta."""

from __future__ import annotations

from facula.optim._listed import ListOptimizer, kept, lr_of
from facula.optim.optimizer import _check_lr


class Adadelta(ListOptimizer):
    """Adadelta: steps in units of the running mean of earlier steps.

    Args:
        params: iterable of parameters or of groups.
        lr: factor of the step.
        rho: decay of the two running means.
        eps: added to both.
        weight_decay, foreach, capturable, maximize, differentiable: as in `Adam`.
    """

    def __init__(
        self,
        params,
        lr=1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_lr(lr, False)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        if not weight_decay >= 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        super().__init__(
            params,
            {
                "lr": lr,
                "rho": rho,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "capturable": capturable,
                "foreach": foreach,
                "differentiable": differentiable,
            },
        )

    def _buffers(self, group):
        return ["square_avg", "acc_delta"]

    def _update(self, group, ops, counts, params, grads, squares, accumulated):
        rho, eps = group["rho"], group["eps"]
        ops.mul_(squares, rho)
        ops.addcmul_(squares, grads, grads, 1 - rho)
        roots = ops.sqrt(ops.add(kept(ops, squares), eps))
        deltas = ops.sqrt(ops.add(kept(ops, accumulated), eps))
        deltas = ops.mul(ops.div(deltas, roots), grads)
        ops.mul_(accumulated, rho)
        ops.addcmul_(accumulated, deltas, deltas, 1 - rho)
        ops.add_(params, ops.mul(deltas, -lr_of(group)))


def __getattr__(name):
    from facula.optim.functional import function_of_module

    return function_of_module(__name__, name)
