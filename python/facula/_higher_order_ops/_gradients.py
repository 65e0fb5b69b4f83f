"""Gradients of calls that are recorded into a graph: functions of operands and cotangents."""

from __future__ import annotations

import facula


def needs_gradient(values, mode):
    """Whether a call below autograd has to give gradients of some values."""
    if mode.pre_dispatch or not facula.is_grad_enabled():
        return False
    return any(isinstance(t, facula.Tensor) and t.requires_grad for t in values)


def wanted_of(values):
    """The positions of tensors that require a gradient."""
    return [i for i, t in enumerate(values) if getattr(t, "requires_grad", False)]


def has_gradient(value):
    """Whether a value is a tensor that can have a gradient."""
    if not isinstance(value, facula.Tensor):
        return False
    return value.dtype.is_floating_point or value.dtype.is_complex


def gradient_of(function, count, wanted):
    """A function of operands and cotangents that gives the gradients of some operands.

    Args:
        function (callable): gives a list of results.
        count (int): of its operands; the cotangents of its results come behind them, None for
            results without one.
        wanted (list[int]): the operands.
    """

    def run(*args):
        operands, grads = args[:count], args[count:]
        results = function(*operands)
        pairs = [
            (r, g)
            for r, g in zip(results, grads, strict=True)
            if g is not None and getattr(r, "requires_grad", False)
        ]
        inputs = [operands[i] for i in wanted]
        if not pairs:
            return [facula.zeros_like(t) for t in inputs]
        found = facula.autograd.grad(
            [r for r, _ in pairs], inputs, [g for _, g in pairs], allow_unused=True
        )
        return [
            facula.zeros_like(t) if g is None else new(g, args)
            for t, g in zip(inputs, found, strict=True)
        ]

    return run


def new(value, operands):
    """A value that is none of the operands: graphs of functions give new tensors."""
    return value.clone() if any(value is one for one in operands) else value


def called_with_leaves(function, wanted):
    """A function whose operands at some positions are leaves that require gradients."""

    def run(*operands):
        with facula.enable_grad():
            return function(
                *(t.detach().requires_grad_() if i in wanted else t for i, t in enumerate(operands))
            )

    return run
