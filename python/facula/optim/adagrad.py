"""Adagrad."""

from __future__ import annotations

import facula
from facula.optim import _lists
from facula.optim._listed import ListOptimizer, kept, lr_of
from facula.optim.optimizer import _check_fused, _check_lr, _new_step, _value


class Adagrad(ListOptimizer):
    """Adagrad: steps divided by the root of the sum of all squares.

    Args:
        params: iterable of parameters or of groups.
        lr, lr_decay, weight_decay: floats.
        initial_accumulator_value: first value of the sums.
        eps: added to the root.
        foreach, maximize, differentiable, fused: as in `Adam`.
    """

    _takes_sparse = True

    def __init__(
        self,
        params,
        lr: float | facula.Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _check_lr(lr, False)
        for name, value in (
            ("lr_decay", lr_decay),
            ("weight_decay", weight_decay),
            ("initial_accumulator_value", initial_accumulator_value),
            ("epsilon", eps),
        ):
            if not value >= 0.0:
                raise ValueError(f"Invalid {name} value: {value}")
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
        if fused:
            _check_fused(fused, differentiable, foreach)
            self._step_supports_amp_scaling = True
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p] = self._new_state(group, p, None)

    def _buffers(self, group):
        return ["sum"]

    def _new_state(self, group, param, grad):
        first = group["initial_accumulator_value"]
        value = complex(first, first) if param.is_complex() else first
        total = facula.full_like(param, value, memory_format=facula.preserve_format)
        return {"step": _new_step(), "sum": total}

    def share_memory(self):
        """Move the sums to shared memory."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def _step_kind(self, group, params, grads, states, names):
        if group["weight_decay"] and any(g.is_sparse for g in grads):
            raise RuntimeError("Adagrad: weight_decay must be 0 for sparse gradients")
        if not _lists.can_fuse(params, grads, group["differentiable"]):
            super()._step_kind(group, params, grads, states, names)
            return
        steps = [state["step"] for state in states]
        facula._foreach_add_(steps, 1)
        facula._fused_adagrad_(
            params,
            grads,
            [state["sum"] for state in states],
            steps,
            lr=_value(group["lr"]),
            lr_decay=group["lr_decay"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=group["maximize"],
            grad_scale=getattr(self, "grad_scale", None),
            found_inf=getattr(self, "found_inf", None),
        )

    def _update(self, group, ops, counts, params, grads, sums):
        rates = [lr_of(group) / (1 + (n - 1) * group["lr_decay"]) for n in counts]
        if any(g.is_sparse for g in grads):
            for param, grad, total, rate in zip(params, grads, sums, rates, strict=True):
                _sparse_update(param, grad.coalesce(), total, rate, group["eps"])
            return
        ops.addcmul_(sums, grads, grads, 1)
        roots = ops.sqrt(kept(ops, sums))
        ops.add_(roots, group["eps"])
        ops.addcdiv_(params, grads, roots, [-rate for rate in rates])


def _sparse_update(param, grad, total, rate, eps):
    """The step of a parameter with a sparse gradient: only the rows that it has."""
    indices, values = grad._indices(), grad._values()

    def like(new_values):
        if new_values.numel() == 0:
            return facula.zeros_like(param)
        return facula.sparse_coo_tensor(indices, new_values, grad.size())

    total.add_(like(values.pow(2)))
    root = total.sparse_mask(grad)._values().sqrt_().add_(eps)
    param.add_(like(values / root), alpha=-rate)


def __getattr__(name):
    from facula.optim.functional import function_of_module

    return function_of_module(__name__, name)
