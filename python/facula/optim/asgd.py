"""Averaged stochastic gradient descent."""

from __future__ import annotations

import facula
from facula.optim._listed import ListOptimizer, lr_of
from facula.optim.optimizer import _check_lr, _check_nonnegative, _step_dtype, _value


class ASGD(ListOptimizer):
    """Averaged SGD: also keeps the mean `ax` of the parameters.

    Args:
        params: iterable of parameters or of groups.
        lr: learning rate.
        lambd: decay term. alpha: power of the decay of the rate. t0: step at which averaging
            starts.
        weight_decay, foreach, maximize, differentiable, capturable: as in `Adam`.
    """

    def __init__(
        self,
        params,
        lr: float | facula.Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        _check_lr(lr, False)
        _check_nonnegative(lambd=lambd, alpha=alpha, weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "lambd": lambd,
                "alpha": alpha,
                "t0": t0,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _buffers(self, group):
        return ["eta", "mu", "ax"]

    def _new_state(self, group, param, grad):
        state = super()._new_state(group, param, grad)
        state["eta"] = facula.as_tensor(_value(group["lr"]), dtype=_step_dtype()).clone().detach()
        state["mu"] = facula.ones((), dtype=_step_dtype())
        return state

    def _update(self, group, ops, counts, params, grads, etas, mus, averages):
        lambd, lr = group["lambd"], lr_of(group)
        rates = [_value(eta) for eta in etas]
        ops.mul_(params, [1 - lambd * rate for rate in rates])
        ops.addcmul_(params, grads, [facula.ones_like(g) for g in grads], [-rate for rate in rates])
        for param, average, mu in zip(params, averages, mus, strict=True):
            if _value(mu) == 1:
                average.copy_(param)
            else:
                average.add_(param.sub(average).mul_(_value(mu)))
        for eta, mu, n in zip(etas, mus, counts, strict=True):
            eta.copy_(facula.as_tensor(lr / (1 + lambd * lr * n) ** group["alpha"]))
            mu.copy_(facula.as_tensor(1 / max(1, n - group["t0"])))


def __getattr__(name):
    from facula.optim.functional import function_of_module

    return function_of_module(__name__, name)
