"""Adafactor."""

from __future__ import annotations

import facula
from facula.optim.optimizer import Optimizer, _new_step, _step_dtype


class Adafactor(Optimizer):
    """Adafactor: steps scaled by a mean of squares that is kept as rows and columns only.

    Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost".

    Args:
        params: iterable of parameters or of groups.
        lr: greatest relative step.
        beta2_decay: power of the step count in the decay of the squares, at most 0.
        eps: pair of the least mean of squares (None: the dtype's own) and the least parameter
            scale.
        d: steps with a larger root mean square are scaled down to it.
        weight_decay: part of the parameter that is subtracted, times `lr`.
        foreach: accepted; makes no difference.
        maximize: climb instead of descend.

    Raises:
        ValueError: settings out of range.
        RuntimeError: complex parameters or sparse gradients, when stepping.

    Example:
        >>> w = facula.ones(2, 3, requires_grad=True)
        >>> opt = facula.optim.Adafactor([w])
        >>> w.sum().backward()
        >>> opt.step()
        >>> sorted(opt.state[w])
        ['col_var', 'row_var', 'step']
    """

    def __init__(
        self,
        params,
        lr: float | facula.Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, facula.Tensor) and lr.numel() != 1:
            raise ValueError(f"Adafactor: a Tensor lr must have 1 element; got {lr.numel()}")
        _check_settings(lr, beta2_decay, eps, d, weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "beta2_decay": beta2_decay,
                "eps": eps,
                "d": d,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
            },
        )

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("foreach", None)
            for p in group["params"]:
                saved = self.state.get(p)
                if saved and not isinstance(saved["step"], facula.Tensor):
                    saved["step"] = facula.tensor(float(saved["step"]), dtype=_step_dtype())

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
        if p.is_complex():
            raise RuntimeError(f"Adafactor: parameters must be real; got {p.dtype}")
        if grad.is_sparse:
            raise RuntimeError("Adafactor: gradients must be dense; got a sparse one")
        state = self.state[p]
        if not state:
            state.update(_new_state(grad))
        self._step_with(group, p, grad, state)

    @staticmethod
    def _step_with(group, p, grad, state):
        state["step"] += 1
        _update(group, p, -grad if group["maximize"] else grad, state)


def _check_settings(lr, beta2_decay, eps, d, weight_decay):
    at_least_0 = {"lr": lr, "eps[0]": eps[0], "eps[1]": eps[1], "weight_decay": weight_decay}
    for name, value in at_least_0.items():
        if value is not None and not 0.0 <= value:
            raise ValueError(f"Adafactor: {name} must be at least 0; got {value}")
    if not 0.0 >= beta2_decay:
        raise ValueError(f"Adafactor: beta2_decay must be at most 0; got {beta2_decay}")
    if not 1.0 <= d:
        raise ValueError(f"Adafactor: d must be at least 1; got {d}")


def _new_state(grad):
    state = {"step": _new_step()}
    if grad.dim() < 2:
        state["variance"] = facula.zeros_like(grad, memory_format=facula.preserve_format)
        return state
    *outer, rows, cols = grad.shape
    state["row_var"] = grad.new_zeros((*outer, rows, 1))
    state["col_var"] = grad.new_zeros((*outer, 1, cols))
    return state


def _mean_square(grad, dim):
    return grad.norm(dim=dim, keepdim=True).square_().div_(grad.size(dim))


def _variance(grad, state, weight, least):
    """The running mean of squares, from its row and column means where there are two dims."""
    if grad.dim() < 2:
        return state["variance"].lerp_(grad * grad, weight).clone()
    rows = state["row_var"].lerp_(_mean_square(grad, -1), weight)
    cols = state["col_var"].lerp_(_mean_square(grad, -2), weight)
    return (rows @ cols).div_(rows.mean(dim=-2, keepdim=True).clamp_(min=least))


def _update(group, p, grad, state):
    least, least_scale = group["eps"]
    if least is None:
        least = facula.finfo(p.dtype).eps
    count = state["step"].item()
    rate = min(group["lr"], 1 / count**0.5)
    size = max(least_scale, p.norm(2).item() / p.numel() ** 0.5) * rate
    if group["weight_decay"] != 0:
        p.mul_(1 - group["lr"] * group["weight_decay"])
    variance = _variance(grad, state, count ** group["beta2_decay"], least)
    update = variance.clamp_(min=least * least).rsqrt_().mul_(grad)
    too_large = max(1.0, update.norm(2).item() / (update.numel() ** 0.5 * group["d"]))
    p.add_(update, alpha=-size / too_large)


def __getattr__(name):
    from facula.optim.functional import function_of_module

    return function_of_module(__name__, name)
