"""RAdam."""

from __future__ import annotations

from facula.optim._listed import ListOptimizer, kept, lr_of
from facula.optim.optimizer import _check_betas, _check_lr


class RAdam(ListOptimizer):
    """RAdam: Adam that waits with scaling until the mean of squares is reliable.

    Args:
        params: iterable of parameters or of groups.
        lr: learning rate.
        betas: decay of the two means.
        decoupled_weight_decay: weight decay as in AdamW.
        eps, weight_decay, foreach, maximize, capturable, differentiable: as in `Adam`.
    """

    _later_settings = {"decoupled_weight_decay": False}

    def __init__(
        self,
        params,
        lr=1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
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
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "decoupled_weight_decay": decoupled_weight_decay,
                "differentiable": differentiable,
            },
        )

    def _buffers(self, group):
        return ["exp_avg", "exp_avg_sq"]

    def _update(self, group, ops, counts, params, grads, means, squares):
        beta1, beta2 = group["betas"]
        lr = lr_of(group)
        if group["weight_decay"] and group["decoupled_weight_decay"]:
            ops.mul_(params, 1 - lr * group["weight_decay"])
        ops.lerp_(means, grads, 1 - beta1)
        ops.mul_(squares, beta2)
        ops.addcmul_(squares, grads, grads, 1 - beta2)
        corrected = ops.div(kept(ops, means), [1 - beta1**n for n in counts])
        roots = ops.add(ops.sqrt(kept(ops, squares)), group["eps"])
        scales = [_rectifier(n, beta2) for n in counts]
        # Before the variance is known the step is the plain mean; the two kinds are apart.
        plain = [i for i, scale in enumerate(scales) if scale is None]
        scaled = [i for i, scale in enumerate(scales) if scale is not None]
        if plain:
            ops.add_([params[i] for i in plain], ops.mul([corrected[i] for i in plain], -lr))
        if scaled:
            ops.addcdiv_(
                [params[i] for i in scaled],
                [corrected[i] for i in scaled],
                [roots[i] for i in scaled],
                [-lr * scales[i] for i in scaled],
            )


def _rectifier(n, beta2):
    """The factor of an adaptive step, with the correction of the root; None while too early."""
    longest = 2 / (1 - beta2) - 1
    correction = 1 - beta2**n
    length = longest - 2 * n * beta2**n / correction
    if length <= 5.0:
        return None
    ratio = ((length - 4) * (length - 2) * longest) / ((longest - 4) * (longest - 2) * length)
    return (ratio * correction) ** 0.5


def __getattr__(name):
    from facula.optim.functional import function_of_module

    return function_of_module(__name__, name)
