"""while_loop: a function on its own results, as long as a condition holds."""

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
from facula._higher_order_ops._gradients import needs_gradient
from facula._higher_order_ops._operator import HigherOrderOperator
from facula._higher_order_ops.cond import check_nest
from facula._higher_order_ops.scan import gradients_of_steps, outputs_of_steps
from facula.utils._pytree import tree_flatten, tree_unflatten


def while_loop(cond_fn, body_fn, carried_inputs):
    """Runs a function on its own results as long as a condition holds.

    Where calls are recorded into a graph, both functions become graphs of their own.

    Args:
        cond_fn (callable): of the carried values; a bool, or a bool Tensor of one element.
        body_fn (callable): of the carried values; gives the next ones, as many, with the shapes
            and dtypes of the first.
        carried_inputs (tuple or list): nested tensors and numbers.

    Returns:
        tuple: the last values.

    Raises:
        RuntimeError: an argument or a result of another kind.

    Example:
        >>> start = (facula.tensor(0), facula.ones(2))
        >>> facula.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), start)
        (tensor(3), tensor([8., 8.]))
    """
    if not (callable(cond_fn) and callable(body_fn)):
        raise RuntimeError("while_loop(): expected cond_fn and body_fn to be callable")
    check_nest("while_loop", "carried_inputs", carried_inputs)
    mode = mode_that_records()
    if mode is None:
        return _repeated(cond_fn, body_fn, tuple(carried_inputs), ())
    leaves, spec = tree_flatten(tuple(carried_inputs))

    def of_leaves(function):
        return lambda *values: function(*tree_unflatten(list(values), spec))

    results = _in_graph(of_leaves(cond_fn), of_leaves(body_fn), leaves, [], mode)
    return tree_unflatten(list(results), spec)


def _repeated(cond_fn, body_fn, carried, further):
    while _holds(cond_fn(*carried, *further)):
        results = body_fn(*carried, *further)
        if not isinstance(results, (tuple, list)):
            raise RuntimeError(
                f"while_loop(): expected body_fn to give a tuple; got {type(results).__name__}"
            )
        _check_same_kinds(carried, results)
        carried = tuple(results)
    return carried


def _in_graph(cond_fn, body_fn, carried, further, mode):
    if _functional.any_of([carried, further]):
        return _functional.call(
            lambda *given: _in_graph(cond_fn, body_fn, *given, mode), carried, further
        )
    operands = [*carried, *further]
    captures = [Captured("while_loop", fn, operands, mode) for fn in (cond_fn, body_fn)]
    _check_condition(captures[0].values)
    _check_same_kinds(carried, captures[1].values)
    kept, lifted, names = operands_of(captures, operands, mode, keep_all=True, named=False)
    modules = [
        captures[0].module(kept, lifted, names, single=True),
        captures[1].module(kept, lifted, names),
    ]
    further = (*further, *lifted)
    if not needs_gradient([*carried, *further], mode):
        return _recorded(while_loop_op, _repeated, modules, tuple(carried), further)
    if not all(isinstance(t, facula.Tensor) for t in carried):
        raise NotImplementedError(
            "while_loop(): gradients of recorded loops need tensors as carried values; got "
            f"{[type(t).__name__ for t in carried]}"
        )
    return _WhileLoop.apply(*modules, len(carried), *carried, *further)


def _recorded(op, run, modules, carried, further):
    """The results of a call of an operator that runs so, recorded."""
    mode = mode_that_records()
    proxies = [
        attribute(mode, "while_loop_cond_graph", modules[0]),
        attribute(mode, "while_loop_body_graph", modules[1]),
    ]

    def results():
        tensors = [t for t in (*carried, *further) if isinstance(t, facula.Tensor)]
        if not any(facula._C._is_fake(t) for t in tensors):
            return tuple(run(*modules, carried, further))
        last = tuple(modules[1](*carried, *further))
        # How many steps there are is not known: nothing in the graph reads it.
        return last if run is _repeated else (*last, *(t.new_empty((2, *t.shape)) for t in carried))

    return record(mode, op, (*proxies, carried, further), results)


def _kept(cond_fn, body_fn, carried, further):
    """The last values, and those before each step, stacked."""
    rows, carried = [], tuple(carried)
    while _holds(cond_fn(*carried, *further)):
        rows.append(carried)
        carried = tuple(body_fn(*carried, *further))
    if not rows:
        return [*carried, *(t.new_empty((0, *t.shape)) for t in carried)]
    return [*carried, *(facula.stack(column) for column in zip(*rows, strict=True))]


class _WhileLoop(facula.autograd.Function):
    """A recorded loop that keeps the values before each step; its gradient is a `scan` back."""

    @staticmethod
    def forward(ctx, cond_module, body_module, count, *operands):
        """Record the call."""
        carried, further = tuple(operands[:count]), tuple(operands[count:])
        modules = cond_module, body_module
        results = _recorded(while_loop_kept_op, _kept, modules, carried, further)
        ctx.module, ctx.counts, ctx.operands = body_module, (count, 0), operands
        results, ctx.kept = results[:count], results[count:]
        return outputs_of_steps(ctx, results)

    @staticmethod
    def backward(ctx, *grads):
        """Record the call that goes back through the steps."""
        return None, None, None, *gradients_of_steps(ctx, grads)


def _check_condition(values):
    if len(values) != 1:
        raise RuntimeError(f"while_loop(): expected cond_fn to give one bool; got {values}")
    if isinstance(values[0], facula.Tensor):
        if values[0].dtype is facula.bool and values[0].numel() == 1:
            return
        raise RuntimeError(
            "while_loop(): expected cond_fn to give a bool tensor of one element; got "
            f"{values[0].dtype} of shape {list(values[0].shape)}"
        )
    if not isinstance(values[0], bool):
        raise RuntimeError(
            f"while_loop(): expected cond_fn to give a bool; got {type(values[0]).__name__}"
        )


def _holds(answer):
    if isinstance(answer, facula.Tensor):
        if answer.dtype is not facula.bool or answer.numel() != 1:
            raise RuntimeError(
                "while_loop(): expected cond_fn to give a bool tensor of one element; got "
                f"{answer.dtype} of shape {list(answer.shape)}"
            )
        return answer.item()
    if not isinstance(answer, bool):
        raise RuntimeError(
            "while_loop(): expected cond_fn to give a bool or a bool tensor; got "
            f"{type(answer).__name__}"
        )
    return answer


def _kinds(values):
    return [
        (leaf.dtype, tuple(leaf.shape)) if isinstance(leaf, facula.Tensor) else type(leaf)
        for leaf in tree_flatten(tuple(values))[0]
    ]


def _check_same_kinds(before, after):
    if _kinds(before) != _kinds(after):
        raise RuntimeError(
            "while_loop(): expected body_fn to give values of the same shapes and dtypes as it "
            f"gets, {_kinds(before)}; got {_kinds(after)}"
        )


def _run(cond_fn, body_fn, carried_inputs, additional_inputs=()):
    """`while_loop` of flat values, as graphs call it."""
    mode = mode_that_records()
    if mode is None:
        return _repeated(cond_fn, body_fn, tuple(carried_inputs), tuple(additional_inputs))
    return tuple(_in_graph(cond_fn, body_fn, list(carried_inputs), list(additional_inputs), mode))


while_loop_op = HigherOrderOperator("while_loop", _run)


def _run_kept(cond_fn, body_fn, carried_inputs, additional_inputs=()):
    """A loop that keeps the values before each step, as graphs call it."""
    carried, further = tuple(carried_inputs), tuple(additional_inputs)
    if mode_that_records() is None:
        return tuple(_kept(cond_fn, body_fn, carried, further))
    if _functional.any_of([carried, further]):
        return tuple(_functional.call(lambda *g: _run_kept(cond_fn, body_fn, *g), carried, further))
    return tuple(_recorded(while_loop_kept_op, _kept, (cond_fn, body_fn), carried, further))


while_loop_kept_op = HigherOrderOperator("while_loop_kept", _run_kept)
