"""Stochastic gradient descent."""

from __future__ import annotations

import facula
from facula.optim import _lists
from facula.optim.optimizer import Optimizer, _check_fused, _check_nonnegative, _value


class SGD(Optimizer):
    """Stochastic gradient descent with momentum, Nesterov momentum and weight decay.

    Args:
        params: iterable of parameters or of groups.
        lr: learning rate, a float or a 1-element Tensor.
        momentum, dampening, weight_decay: floats.
        nesterov: use Nesterov momentum.
        maximize: climb instead of descend.
        foreach, fused: accepted; the fastest way is always taken.
        differentiable: keep the graph through the step.

    Example:
        >>> model = facula.nn.Linear(2, 1)
        >>> opt = facula.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    """

    def __init__(
        self,
        params,
        lr: float | facula.Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | facula.Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if isinstance(lr, facula.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if lr < 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        _check_nonnegative(momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                f"SGD: nesterov needs a momentum and no dampening; got {momentum} and {dampening}"
            )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        if fused:
            self._step_supports_amp_scaling = True
            _check_fused(fused, differentiable, foreach)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in (
                ("nesterov", False),
                ("maximize", False),
                ("foreach", None),
                ("differentiable", False),
                ("fused", False),
            ):
                group.setdefault(name, value)

    def step(self, closure=None):
        """Change the parameters once; returns the loss of `closure`, or None."""
        loss = self._evaluate(closure)
        with facula.set_grad_enabled(self.defaults["differentiable"] and facula.is_grad_enabled()):
            for group in self.param_groups:
                self._step_group(group)
        return loss

    def _step_group(self, group):
        params, grads, buffers = [], [], []
        momentum = group["momentum"]
        state = self.state
        for p in group["params"]:
            grad = p.grad
            if grad is None:
                continue
            params.append(p)
            grads.append(grad)
            if momentum:
                buffers.append(state[p].get("momentum_buffer") if p in state else None)
        if params:
            self._step_buffered(group, params, grads, buffers)

    def _step_buffered(self, group, params, grads, buffers):
        momentum = group["momentum"]
        # A buffer is made at its parameter's first step, so the two kinds are stepped apart.
        for is_first in (False, True) if momentum else (False,):
            chosen = [i for i, b in enumerate(buffers) if (b is None) is is_first]
            if momentum and not chosen:
                continue
            if momentum and len(chosen) < len(params):
                pick = [[values[i] for i in chosen] for values in (params, grads, buffers)]
            else:
                pick = [params, grads, buffers]
            self._step_lists(group, *pick, is_first=is_first)

    def _step_lists(self, group, params, grads, buffers, is_first):
        if is_first:
            buffers = [facula.empty_like(g) if not g.is_sparse else None for g in grads]
        if not _lists.can_fuse(params, grads, group["differentiable"]):
            buffers = self._step_plain(group, params, grads, buffers, is_first)
        else:
            self._step_fused(group, params, grads, buffers, is_first)
        if is_first:
            for p, buffer in zip(params, buffers, strict=True):
                self.state[p]["momentum_buffer"] = buffer

    def _step_fused(self, group, params, grads, buffers, is_first):
        for ps, gs, bs in _lists.split_by_kind(params, grads, buffers):
            facula._fused_sgd_(
                ps,
                gs,
                bs,
                weight_decay=_value(group["weight_decay"]),
                momentum=group["momentum"],
                lr=group["lr"],
                dampening=group["dampening"],
                nesterov=group["nesterov"],
                maximize=group["maximize"],
                is_first_step=is_first,
                grad_scale=getattr(self, "grad_scale", None),
                found_inf=getattr(self, "found_inf", None),
            )

    @staticmethod
    def _step_plain(group, params, grads, buffers, is_first):
        """One tensor after the other; returns the momentum buffers."""
        result = []
        decay, momentum = group["weight_decay"], group["momentum"]
        for i, (param, grad) in enumerate(zip(params, grads, strict=True)):
            grad = -grad if group["maximize"] else grad
            if decay != 0:
                grad = grad + param * decay
            if momentum != 0:
                if is_first:
                    buffer = grad.detach().clone()
                else:
                    buffer = buffers[i].mul_(momentum).add_(grad, alpha=1 - group["dampening"])
                result.append(buffer)
                grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
            if isinstance(group["lr"], facula.Tensor) and grad.requires_grad:
                param.add_(grad * -group["lr"])
            else:
                param.add_(grad, alpha=-_value(group["lr"]))
        return result


def __getattr__(name):
    from facula.optim.functional import function_of_module

    return function_of_module(__name__, name)
