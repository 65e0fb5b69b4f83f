"""Optimizers that are told of one gradient at a time."""

from __future__ import annotations

import facula
from facula import optim

__all__ = ["as_functional_optim"]

# Those that update each parameter by its own gradient alone.
_KINDS = (
    optim.Adagrad,
    optim.Adam,
    optim.AdamW,
    optim.SGD,
    optim.Adadelta,
    optim.RMSprop,
    optim.Rprop,
    optim.Adamax,
)


class _FunctionalOptimizer:
    """An optimizer for each parameter that comes, made when it comes first.

    Args:
        kind (type): of optimizers.
        args, kwargs: theirs, after the parameters.
    """

    def __init__(self, kind, args, kwargs):
        self._make = lambda param: kind([param], *args, **kwargs)
        self._optimizers = {}
        self.param_group = {"params": []}
        self.defaults = dict(self._make(facula.zeros(1, requires_grad=True)).defaults)

    @property
    def state(self):
        """By parameter, what its optimizer remembers."""
        return {p: o.state[p] for p, o in self._optimizers.items()}

    def step_param(self, param, grad):
        """Update one parameter.

        Args:
            param (Tensor): the parameter.
            grad (Tensor): its gradient; None leaves it alone.
        """
        if grad is None:
            return
        if param not in self._optimizers:
            self._optimizers[param] = self._make(param)
        before, param.grad = param.grad, grad
        try:
            self._optimizers[param].step()
        finally:
            param.grad = before

    def step(self, gradients):
        """Update the parameters of `param_group`.

        Args:
            gradients (list of Tensor): one for each, or None.

        Raises:
            ValueError: their numbers differ.
        """
        params = self.param_group["params"]
        if len(params) != len(gradients):
            raise ValueError(
                f"step(): expected a gradient for each of {len(params)} parameters; got "
                f"{len(gradients)}"
            )
        for param, grad in zip(params, gradients, strict=True):
            self.step_param(param, grad)


def as_functional_optim(optim_cls, *args, **kwargs):
    """An optimizer that takes parameters and gradients when they come, one after the other.

    Args:
        optim_cls (type): the optimizer.
        args, kwargs: its settings, without parameters.

    Returns:
        an object with `step_param(param, grad)` and `step(gradients)`

    Raises:
        ValueError: an optimizer that has to see all parameters at once.

    Example:
        >>> optimizer = as_functional_optim(facula.optim.SGD, lr=0.5)
        >>> p = facula.ones(2, requires_grad=True)
        >>> optimizer.step_param(p, facula.ones(2))
        >>> p.tolist()
        [0.5, 0.5]
    """
    if optim_cls not in _KINDS:
        raise ValueError(
            "as_functional_optim(): expected one of "
            f"{', '.join(kind.__name__ for kind in _KINDS)}; got {optim_cls}"
        )
    return _FunctionalOptimizer(optim_cls, args, kwargs)
