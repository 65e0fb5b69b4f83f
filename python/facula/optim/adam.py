"""Adam."""

from __future__ import annotations

import facula
from facula.optim import _lists
from facula.optim.optimizer import (
    Optimizer,
    _check_betas,
    _check_flags,
    _check_fused,
    _check_lr,
    _new_step,
    _step_dtype,
    _value,
)


class Adam(Optimizer):
    """Adam: steps scaled by running means of the gradient and of its square.

    Args:
        params: iterable of parameters or of groups.
        lr: learning rate, a float or a 1-element Tensor.
        betas: decay of the two means.
        eps: added to the denominator.
        weight_decay: added to the gradient (to the step when `decoupled_weight_decay`).
        amsgrad: divide by the greatest mean of squares so far.
        foreach, fused, capturable: accepted; the fastest way is always taken.
        maximize: climb instead of descend.
        differentiable: keep the graph through the step.

    Example:
        >>> model = facula.nn.Linear(2, 1)
        >>> opt = facula.optim.Adam(model.parameters(), lr=1e-3)
    """

    def __init__(
        self,
        params,
        lr: float | facula.Tensor = 1e-3,
        betas: tuple[float | facula.Tensor, float | facula.Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        _check_lr(lr, foreach, capturable)
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        _check_betas(betas)
        _check_tensor_betas(betas, foreach, capturable)
        if not weight_decay >= 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        if fused:
            _check_fused(fused, differentiable, foreach)
            self._step_supports_amp_scaling = True

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in (
                ("amsgrad", False),
                ("maximize", False),
                ("foreach", None),
                ("capturable", False),
                ("differentiable", False),
                ("fused", None),
                ("decoupled_weight_decay", False),
            ):
                group.setdefault(name, value)
            for p in group["params"]:
                _step_as_tensor(self.state.get(p))

    def step(self, closure=None):
        """Change the parameters once; returns the loss of `closure`, or None."""
        loss = self._evaluate(closure)
        with facula.set_grad_enabled(self.defaults["differentiable"] and facula.is_grad_enabled()):
            for group in self.param_groups:
                self._step_group(group)
        return loss

    def _new_state(self, state, p, amsgrad):
        zeros = facula.zeros_like(p, memory_format=facula.preserve_format)
        state["step"] = _new_step()
        state["exp_avg"] = zeros
        state["exp_avg_sq"] = facula.zeros_like(p, memory_format=facula.preserve_format)
        if amsgrad:
            state["max_exp_avg_sq"] = facula.zeros_like(p, memory_format=facula.preserve_format)

    def _step_group(self, group):
        params, grads, avgs, squares, maxima, steps = [], [], [], [], [], []
        amsgrad, table = group["amsgrad"], self.state
        for p in group["params"]:
            grad = p.grad
            if grad is None:
                continue
            state = table[p]
            if not state:
                if grad.is_sparse:
                    raise RuntimeError("Adam: gradients must be dense; got a sparse one")
                self._new_state(state, p, amsgrad)
            params.append(p)
            grads.append(grad)
            avgs.append(state["exp_avg"])
            squares.append(state["exp_avg_sq"])
            steps.append(state["step"])
            if amsgrad:
                maxima.append(state["max_exp_avg_sq"])
        if not params:
            return
        self._step_collected(group, params, grads, avgs, squares, maxima, steps)

    def _step_collected(self, group, params, *lists):
        _check_flags(group, params)
        if _lists.can_fuse(params, lists[0], group["differentiable"]):
            self._step_fused(group, params, *lists)
        else:
            self._step_plain(group, params, *lists)

    def _step_fused(self, group, *lists):
        beta1, beta2 = group["betas"]
        op = facula._fused_adamw_ if group["decoupled_weight_decay"] else facula._fused_adam_
        found_inf = getattr(self, "found_inf", None)
        for params, grads, avgs, squares, maxima, steps in _lists.split_by_kind(*lists):
            facula._foreach_add_(steps, 1)
            op(
                params,
                grads,
                avgs,
                squares,
                maxima,
                steps,
                lr=group["lr"],
                beta1=_value(beta1),
                beta2=_value(beta2),
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                amsgrad=group["amsgrad"],
                maximize=group["maximize"],
                grad_scale=getattr(self, "grad_scale", None),
                found_inf=found_inf,
            )
            if found_inf is not None:
                facula._foreach_sub_(steps, [found_inf] * len(steps))

    @staticmethod
    def _step_plain(group, params, grads, avgs, squares, maxima, steps):
        """One tensor after the other, with operators that can be differentiated."""
        beta1, beta2 = (_value(b) for b in group["betas"])
        lr, decay = group["lr"], group["weight_decay"]
        for i, (param, grad, step) in enumerate(zip(params, grads, steps, strict=True)):
            step += 1
            count = step.item()
            grad = -grad if group["maximize"] else grad
            if decay != 0 and group["decoupled_weight_decay"]:
                param.mul_(1 - lr * decay)
            elif decay != 0:
                grad = grad + param * decay
            values = [param, grad, avgs[i], squares[i]] + ([maxima[i]] if maxima else [])
            if param.is_complex():
                values = [facula.view_as_real(v) for v in values]
            param, grad, avg, square = values[:4]
            avg.lerp_(grad, 1 - beta1)
            square.mul_(beta2).addcmul_(grad, grad.conj(), value=1 - beta2)
            if maxima:
                # Copied, because the maximum must not be part of an older graph.
                values[4].copy_(facula.maximum(values[4].clone(), square))
                square = values[4]
            # clone(): the running means change again in the next step of a differentiable run.
            root = (square.clone() if group["differentiable"] else square).sqrt()
            denom = root / (1 - beta2**count) ** 0.5 + group["eps"]
            numerator = avg.clone() if group["differentiable"] else avg
            size = lr / (1 - beta1**count)
            if isinstance(size, facula.Tensor):
                param.add_(numerator / denom * -size)
            else:
                param.addcdiv_(numerator, denom, value=-size)


def _check_tensor_betas(betas, foreach, capturable):
    are_tensors = [isinstance(beta, facula.Tensor) for beta in betas]
    if any(are_tensors) and not all(are_tensors):
        raise ValueError("betas must be two numbers or two Tensors; got one of each")
    if not any(are_tensors):
        return
    if foreach and not capturable:
        raise ValueError("Tensor betas with foreach=True need capturable=True")
    for beta in betas:
        if beta.numel() != 1:
            raise ValueError(f"a Tensor beta must have 1 element; got {beta.numel()}")


def _step_as_tensor(state):
    """Turn the step count of an old checkpoint, a number, into a tensor."""
    if state and not isinstance(state["step"], facula.Tensor):
        state["step"] = facula.tensor(float(state["step"]), dtype=_step_dtype())


def __getattr__(name):
    from facula.optim.functional import function_of_module

    return function_of_module(__name__, name)
