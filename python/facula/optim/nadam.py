"""NAdam."""

from __future__ import annotations

import facula
from facula.optim._listed import ListOptimizer, kept, lr_of
from facula.optim.optimizer import _check_betas, _check_lr, _step_dtype, _value


class NAdam(ListOptimizer):
    """NAdam: Adam with Nesterov momentum.

    Args:
        params: iterable of parameters or of groups.
        lr: learning rate.
        betas: decay of the two means.
        momentum_decay: how fast the momentum grows.
        decoupled_weight_decay: weight decay as in AdamW.
        eps, weight_decay, foreach, maximize, capturable, differentiable: as in `Adam`.
    """

    _later_settings = {"decoupled_weight_decay": False}

    def __init__(
        self,
        params,
        lr: float | facula.Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_lr(lr, False)
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        _check_betas(betas)
        if not weight_decay >= 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if not momentum_decay >= 0.0:
            raise ValueError(f"Invalid momentum_decay value: {momentum_decay}")
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
            },
        )

    def _buffers(self, group):
        return ["mu_product", "exp_avg", "exp_avg_sq"]

    def _new_state(self, group, param, grad):
        state = super()._new_state(group, param, grad)
        state["mu_product"] = facula.ones((), dtype=_step_dtype())
        return state

    def _update(self, group, ops, counts, params, grads, products, means, squares):
        beta1, beta2 = group["betas"]
        lr, drift = lr_of(group), group["momentum_decay"]
        if group["weight_decay"] and group["decoupled_weight_decay"]:
            ops.mul_(params, 1 - lr * group["weight_decay"])
        now = [beta1 * (1.0 - 0.5 * 0.96 ** (n * drift)) for n in counts]
        then = [beta1 * (1.0 - 0.5 * 0.96 ** ((n + 1) * drift)) for n in counts]
        ops.mul_(products, now)
        totals = [_value(p) for p in products]
        ops.lerp_(means, grads, 1 - beta1)
        ops.mul_(squares, beta2)
        ops.addcmul_(squares, grads, grads, 1 - beta2)
        roots = ops.div(kept(ops, squares), [1 - beta2**n for n in counts])
        roots = ops.add(ops.sqrt(roots), group["eps"])
        ops.addcdiv_(
            params,
            grads,
            roots,
            [-lr * (1.0 - mu) / (1.0 - total) for mu, total in zip(now, totals, strict=True)],
        )
        ops.addcdiv_(
            params,
            kept(ops, means),
            roots,
            [-lr * mu / (1.0 - total * mu) for mu, total in zip(then, totals, strict=True)],
        )


def __getattr__(name):
    from facula.optim.functional import function_of_module

    return function_of_module(__name__, name)
