"""cond: one of two functions, chosen when the program runs."""

from __future__ import annotations

import facula
from facula._higher_order_ops import _functional
from facula._higher_order_ops._capture import (
    Captured,
    attribute,
    mode_that_records,
    operands_of,
    record,
)
from facula._higher_order_ops._gradients import gradient_of, needs_gradient, wanted_of
from facula._higher_order_ops._operator import HigherOrderOperator
from facula.utils._pytree import tree_flatten, tree_unflatten

_NUMBERS = (int, float, bool)


def cond(pred, true_fn, false_fn, operands=()):
    """One of two functions of the operands.

    Where calls are recorded into a graph, both functions become graphs of their own, and the choice
    is made when the graph runs. They then have to give tensors of the same shapes and dtypes.

    Args:
        pred (bool or Tensor): which; a Tensor has one element.
        true_fn, false_fn (callable): called with the operands where `pred` is true, or false.
        operands (tuple or list): nested tensors.

    Returns:
        What the function returned. Gradients flow through the branch that ran.

    Raises:
        RuntimeError: an argument of another kind; branches of a graph whose results differ.

    Example:
        >>> x = facula.tensor([1.0, 2.0])
        >>> facula.cond(x.sum() > 2, lambda x: x + 1, lambda x: x - 1, (x,))
        tensor([2., 3.])
    """
    if not (callable(true_fn) and callable(false_fn)):
        raise RuntimeError("cond(): expected both branches to be callable")
    if not isinstance(pred, (facula.Tensor, facula.SymBool, *_NUMBERS)):
        raise RuntimeError(f"cond(): expected a bool or a tensor of one element; got {pred!r}")
    if isinstance(pred, facula.Tensor) and pred.numel() != 1:
        raise RuntimeError(
            f"cond(): expected a bool or a tensor of one element; got shape {list(pred.shape)}"
        )
    check_nest("cond", "operands", operands)
    mode = mode_that_records()
    if mode is None or isinstance(pred, _NUMBERS):
        return (true_fn if _holds(pred) else false_fn)(*operands)
    leaves, spec = tree_flatten(tuple(operands))
    branches = [_of_leaves(fn, spec) for fn in (true_fn, false_fn)]
    specs = []
    results = _in_graph(pred, *branches, leaves, mode, specs)
    return tree_unflatten(list(results), specs[0])


def _holds(pred):
    """Whether a condition holds; both branches give the same kinds where it is not known."""
    is_unknown = isinstance(pred, facula.SymBool) or (
        isinstance(pred, facula.Tensor) and facula._C._is_fake(pred)
    )
    return True if is_unknown else bool(pred)


def check_nest(op, name, values):
    """Raise RuntimeError where values are no tuple or list of nested tensors."""
    allowed = (facula.Tensor, facula.SymInt, *_NUMBERS)
    if isinstance(values, (tuple, list)):
        if all(leaf is None or isinstance(leaf, allowed) for leaf in tree_flatten(values)[0]):
            return
    raise RuntimeError(f"{op}(): expected {name} to be a tuple of nested tensors; got {values!r}")


def _of_leaves(function, spec):
    return lambda *leaves: function(*tree_unflatten(list(leaves), spec))


def _in_graph(pred, true_fn, false_fn, operands, mode, specs):
    """The results of a call that is recorded; appends their structure to `specs`."""
    if _functional.any_of([pred, *operands]):
        return _functional.call(
            lambda *given: _in_graph(*given, mode, specs), pred, true_fn, false_fn, operands
        )
    captures = [Captured("cond", fn, operands, mode) for fn in (true_fn, false_fn)]
    specs.append(captures[0].spec)
    _check_alike(*captures)
    kept, lifted, names = operands_of(captures, operands, mode)
    modules = [one.module(kept, lifted, names) for one in captures]
    given = [operands[i] for i in kept] + lifted
    if needs_gradient(given, mode):
        return _Cond.apply(pred, *modules, *given)
    return _recorded(pred, *modules, given, mode)


def _recorded(pred, true_module, false_module, operands, mode):
    proxies = [
        attribute(mode, "true_graph", true_module),
        attribute(mode, "false_graph", false_module),
    ]

    def run():
        return tuple((true_module if _holds(pred) else false_module)(*operands))

    return record(mode, cond_op, (pred, *proxies, tuple(operands)), run)


def _check_alike(a, b):
    """Raise RuntimeError where two branches give different kinds of results."""
    kinds = [(str(one.spec), [_kind(v) for v in one.values]) for one in (a, b)]
    if kinds[0] != kinds[1]:
        raise RuntimeError(
            "cond(): expected branches whose results have the same structure, shapes and dtypes; "
            f"got {kinds[0]} and {kinds[1]}"
        )


def _kind(value):
    if isinstance(value, facula.Tensor):
        return value.dtype, list(value.shape)
    return type(value)


class _Cond(facula.autograd.Function):
    """A recorded `cond` whose gradient is a `cond` of the branches' gradients."""

    @staticmethod
    def forward(ctx, pred, true_module, false_module, *operands):
        """Record the call."""
        ctx.modules, ctx.pred, ctx.operands = (true_module, false_module), pred, operands
        ctx.wanted = wanted_of(operands)
        return _recorded(pred, true_module, false_module, list(operands), mode_that_records())

    @staticmethod
    def backward(ctx, *grads):
        """Record the call of the branches' gradients."""
        count, wanted = len(ctx.operands), set(ctx.wanted)
        operands = [*ctx.operands, *grads]
        if mode_that_records() is None:
            chosen = ctx.modules[0 if bool(ctx.pred) else 1]
            with facula.enable_grad():
                given = [
                    t.detach().requires_grad_() if i in wanted else t
                    for i, t in enumerate(ctx.operands)
                ]
                found = gradient_of(chosen, count, ctx.wanted)(*given, *grads)
        else:
            functions = [gradient_of(module, count, ctx.wanted) for module in ctx.modules]
            found = _gradients_in_graph(ctx.pred, functions, operands, wanted)
        by_operand = dict(zip(ctx.wanted, found, strict=True))
        return None, None, None, *(by_operand.get(i) for i in range(count))


def _gradients_in_graph(pred, functions, operands, wanted):
    if _functional.any_of([pred, *operands]):
        return _functional.call(
            lambda pred, operands: _gradients_in_graph(pred, functions, operands, wanted),
            pred,
            operands,
        )
    mode = mode_that_records()
    captures = [Captured("cond", fn, operands, mode, wanted) for fn in functions]
    kept, lifted, names = operands_of(captures, operands, mode)
    modules = [one.module(kept, lifted, names, as_list=True) for one in captures]
    return _recorded(pred, *modules, [operands[i] for i in kept] + lifted, mode)


def _run(pred, true_fn, false_fn, operands=()):
    """`cond` of flat operands, as graphs call it: gives a tuple."""
    mode = mode_that_records()
    if mode is None:
        return tuple((true_fn if _holds(pred) else false_fn)(*operands))
    return tuple(_in_graph(pred, true_fn, false_fn, list(operands), mode, []))


cond_op = HigherOrderOperator("cond", _run)
