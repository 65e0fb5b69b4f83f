"""Resilient backpropagation."""

from __future__ import annotations

import facula
from facula.optim._listed import ListOptimizer
from facula.optim.optimizer import _check_lr


class Rprop(ListOptimizer):
    """Rprop: step sizes of their own that grow and shrink by the sign of the gradient.

    Args:
        params: iterable of parameters or of groups.
        lr: first step size.
        etas: factors of shrinking and growing.
        step_sizes: least and greatest step size.
        capturable, foreach, maximize, differentiable: as in `Adam`.
    """

    def __init__(
        self,
        params,
        lr: float | facula.Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_lr(lr, False)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Rprop: etas must be one in (0, 1) and one above 1; got {etas}")
        super().__init__(
            params,
            {
                "lr": lr,
                "etas": etas,
                "step_sizes": step_sizes,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _buffers(self, group):
        return ["prev", "step_size"]

    def _new_state(self, group, param, grad):
        state = super()._new_state(group, param, grad)
        lr = group["lr"]
        value = complex(lr, lr) if param.is_complex() else lr
        state["step_size"] = facula.full_like(grad, value)
        return state

    def _update(self, group, ops, counts, params, grads, previous, sizes):
        shrink, grow = group["etas"]
        least, most = group["step_sizes"]
        for param, grad, prev, size in zip(params, grads, previous, sizes, strict=True):
            sign = grad.mul(prev.clone() if group["differentiable"] else prev).sign()
            factor = facula.ones_like(size).masked_fill_(sign > 0, grow)
            size.mul_(factor.masked_fill_(sign < 0, shrink)).clamp_(least, most)
            # After a change of sign the parameter rests for one step.
            grad = facula.where(sign < 0, 0, grad)
            param.addcmul_(grad.sign(), size, value=-1)
            prev.copy_(grad)


def __getattr__(name):
    from facula.optim.functional import function_of_module

    return function_of_module(__name__, name)
