"""Muon."""

from __future__ import annotations

import facula
from facula.optim.optimizer import Optimizer

_COEFFICIENTS = (3.4445, -4.775, 2.0315)
_STEPS_LIMIT = 100
# How the learning rate follows the numbers of rows and columns.
_FACTORS = {
    "original": lambda rows, cols: max(1, rows / cols) ** 0.5,
    "match_rms_adamw": lambda rows, cols: 0.2 * max(rows, cols) ** 0.5,
    "spectral_unclamped": lambda rows, cols: (rows / cols) ** 0.5,
}


class Muon(Optimizer):
    """Muon: momentum whose matrices are made orthogonal by a Newton-Schulz iteration.

    Jordan et al., "Muon: An optimizer for hidden layers in neural networks".

    Args:
        params: iterable of matrices, or of groups of such.
        lr: learning rate.
        weight_decay: part of the parameter that is subtracted, times `lr`.
        momentum: weight of the past in the running mean of gradients.
        nesterov: use Nesterov momentum.
        ns_coefficients: of x, x^3 and x^5 in the iteration.
        eps: least norm that is divided by.
        ns_steps: number of iterations, below 100.
        adjust_lr_fn: how `lr` follows the shape (rows, cols): "original" or None multiplies it
            by sqrt(max(1, rows / cols)), "match_rms_adamw" by 0.2 * sqrt(max(rows, cols)),
            "spectral_unclamped" by sqrt(rows / cols).

    Raises:
        ValueError: settings out of range, or parameters that are no matrices.

    Example:
        >>> w = facula.eye(2, requires_grad=True)
        >>> opt = facula.optim.Muon([w], lr=0.1)
        >>> w.sum().backward()
        >>> opt.step()
        >>> list(opt.state[w])
        ['momentum_buffer']
    """

    def __init__(
        self,
        params,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = _COEFFICIENTS,
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if isinstance(lr, facula.Tensor) and lr.numel() != 1:
            raise ValueError(f"Muon: a Tensor lr must have 1 element; got {lr.numel()}")
        for name, value in (("lr", lr), ("momentum", momentum), ("weight_decay", weight_decay)):
            if not 0.0 <= value:
                raise ValueError(f"Muon: {name} must be at least 0; got {value}")
        if adjust_lr_fn not in (None, *_FACTORS):
            raise ValueError(
                f"Muon: adjust_lr_fn must be None or one of {list(_FACTORS)}; got {adjust_lr_fn!r}"
            )
        super().__init__(
            params,
            {
                "lr": lr,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "nesterov": nesterov,
                "ns_coefficients": ns_coefficients,
                "eps": eps,
                "ns_steps": ns_steps,
                "adjust_lr_fn": adjust_lr_fn,
            },
        )
        for group in self.param_groups:
            for p in group["params"]:
                if p.dim() != 2:
                    raise ValueError(
                        f"Muon: parameters must have 2 dimensions; got shape {tuple(p.shape)}"
                    )

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
            raise RuntimeError(f"Muon: parameters must be real; got {p.dtype}")
        if grad.is_sparse:
            raise RuntimeError("Muon: gradients must be dense; got a sparse one")
        state = self.state[p]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = facula.zeros_like(grad, memory_format=facula.preserve_format)
        self._step_with(group, p, grad, state)

    @staticmethod
    def _step_with(group, p, grad, state):
        mean = state["momentum_buffer"].lerp_(grad, 1 - group["momentum"])
        update = grad.lerp(mean, group["momentum"]) if group["nesterov"] else mean
        update = _orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        p.mul_(1 - group["lr"] * group["weight_decay"])
        p.add_(update, alpha=-_adjusted(group["lr"], group["adjust_lr_fn"], p.shape))


def _orthogonal(matrix, coefficients, steps, eps):
    """Nearly the orthogonal factor of `matrix`, in bfloat16 (the iteration heals its rounding)."""
    if steps >= _STEPS_LIMIT:
        raise ValueError(f"Muon: ns_steps must be below {_STEPS_LIMIT}; got {steps}")
    if len(coefficients) != 3:
        raise ValueError(f"Muon: ns_coefficients must be 3 numbers; got {len(coefficients)}")
    a, b, c = coefficients
    is_tall = matrix.size(0) > matrix.size(1)
    x = matrix.bfloat16()
    x = x.T if is_tall else x
    x = x.div(x.norm().clamp(min=eps))
    for _ in range(steps):
        gram = x @ x.T
        x = facula.addmm(x, facula.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if is_tall else x


def _adjusted(lr, how, shape):
    return lr * _FACTORS[how or "original"](*shape[:2])


def __getattr__(name):
    from facula.optim.functional import function_of_module

    return function_of_module(__name__, name)
