"""Branches and loops as functions: `cond` and `while_loop`, which run as the Python they are.

In PyTorch a compiler keeps both as one step of a graph; what they compute is the same.
"""

from __future__ import annotations

import facula
from facula.utils._pytree import tree_flatten

_NUMBERS = (int, float, bool)


def cond(pred, true_fn, false_fn, operands=()):
    """One of two functions of the operands.

    Args:
        pred (bool or Tensor): which; a Tensor has one element.
        true_fn, false_fn (callable): called with the operands where `pred` is true, or false.
        operands (tuple or list): nested tensors.

    Returns:
        What the function returned. Gradients flow through the branch that ran.

    Raises:
        RuntimeError: an argument of another kind.

    Example:
        >>> x = facula.tensor([1.0, 2.0])
        >>> facula.cond(x.sum() > 2, lambda x: x + 1, lambda x: x - 1, (x,))
        tensor([2., 3.])
    """
    if not (callable(true_fn) and callable(false_fn)):
        raise RuntimeError("cond(): expected both branches to be callable")
    if not isinstance(pred, (facula.Tensor, *_NUMBERS)):
        raise RuntimeError(f"cond(): expected a bool or a tensor of one element; got {pred!r}")
    if isinstance(pred, facula.Tensor) and pred.numel() != 1:
        raise RuntimeError(
            f"cond(): expected a bool or a tensor of one element; got shape {list(pred.shape)}"
        )
    _check_nest("cond", "operands", operands)
    return (true_fn if bool(pred) else false_fn)(*operands)


def while_loop(cond_fn, body_fn, carried_inputs):
    """Runs a function on its own results as long as a condition holds.

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
    _check_nest("while_loop", "carried_inputs", carried_inputs)
    carried = tuple(carried_inputs)
    while _holds(cond_fn(*carried)):
        results = body_fn(*carried)
        if not isinstance(results, (tuple, list)):
            raise RuntimeError(
                f"while_loop(): expected body_fn to give a tuple; got {type(results).__name__}"
            )
        _check_same_kinds(carried, results)
        carried = tuple(results)
    return carried


def _check_nest(op, name, values):
    allowed = (facula.Tensor, *_NUMBERS)
    if isinstance(values, (tuple, list)):
        if all(leaf is None or isinstance(leaf, allowed) for leaf in tree_flatten(values)[0]):
            return
    raise RuntimeError(f"{op}(): expected {name} to be a tuple of nested tensors; got {values!r}")


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
