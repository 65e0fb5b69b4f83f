"""Adam for sparse gradients."""

from __future__ import annotations

import facula
from facula.optim.optimizer import Optimizer, _check_betas, _value


class SparseAdam(Optimizer):
    """Adam in which only the rows that a sparse gradient has are moved, means included.

    Args:
        params: iterable of dense parameters, or of groups of such.
        lr: learning rate, above 0.
        betas: decay of the two means.
        eps: added to the denominator.
        maximize: climb instead of descend.

    Raises:
        ValueError: settings out of range, or parameters that are sparse or complex.
        RuntimeError: a dense gradient, when stepping.
    """

    def __init__(
        self,
        params,
        lr: float | facula.Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, facula.Tensor) and lr.numel() != 1:
            raise ValueError(f"SparseAdam: a Tensor lr must have 1 element; got {lr.numel()}")
        for name, value in (("lr", lr), ("eps", eps)):
            if not 0.0 < value:
                raise ValueError(f"SparseAdam: {name} must be above 0; got {value}")
        _check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        self._refuse("dense; got sparse ones", lambda p: p.is_sparse)
        self._refuse("real; got complex ones", lambda p: p.is_complex())

    def _refuse(self, words, is_wrong):
        """Raises ValueError naming the places [group, parameter] of parameters that are wrong."""
        found = [
            [i, j]
            for i, group in enumerate(self.param_groups)
            for j, p in enumerate(group["params"])
            if is_wrong(p)
        ]
        if found:
            raise ValueError(f"SparseAdam: parameters must be {words} at {found}")

    @facula.no_grad()
    def step(self, closure=None):
        """Change the parameters once; returns the loss of `closure`, or None."""
        loss = self._evaluate(closure)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._step_one(group, p, p.grad)
        return loss

    def _step_one(self, group, p, grad):
        if not grad.is_sparse:
            raise RuntimeError("SparseAdam: gradients must be sparse, Adam takes dense ones")
        state = self.state[p]
        if not state:
            state["step"] = 0
            for name in ("exp_avg", "exp_avg_sq"):
                state[name] = facula.zeros_like(p, memory_format=facula.preserve_format)
        state["step"] += 1
        self._step_with(group, p, grad, state)

    @staticmethod
    def _step_with(group, p, grad, state):
        grad = (-grad if group["maximize"] else grad).coalesce()
        where = tuple(grad._indices().unbind(0))
        update_rows(group, p, where, grad._values(), state)


def update_rows(group, param, where, values, state):
    """The step of the elements or rows `where` of a parameter, in place.

    Args:
        group: dict with "lr", "betas" and "eps".
        param: Tensor.
        where: tuple of int64 index Tensors, without repetition.
        values: their gradients.
        state: dict with "step", already counted, and the means "exp_avg" and "exp_avg_sq".
    """
    if values.numel() == 0:
        return
    beta1, beta2 = group["betas"]
    mean = state["exp_avg"][where].lerp(values, 1 - beta1)
    square = state["exp_avg_sq"][where].lerp(values * values, 1 - beta2)
    state["exp_avg"][where] = mean
    state["exp_avg_sq"][where] = square
    count = state["step"]
    rate = _value(group["lr"]) * (1 - beta2**count) ** 0.5 / (1 - beta1**count)
    param[where] -= rate * (mean / square.sqrt().add_(group["eps"]))


def __getattr__(name):
    from facula.optim.functional import function_of_module

    return function_of_module(__name__, name)
