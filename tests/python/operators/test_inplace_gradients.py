"""In-place operators of the table: their derivatives, to second order, are the function's own.

What an operator overwrites is saved for its derivative, with the history that it had: without that
the first gradient is right and the gradient of the gradient is not.
"""

import inspect

import facula
import pytest
from samples import load_ops
from samples.checks import assert_same_values, is_tensor, tensors_of
from samples.common import find, make_arguments, seed_of


def _change(op):
    """The in-place form: a function that changes its first argument and returns it; or None."""
    if not op.inplace:
        return None
    if "." not in op.name:
        if not hasattr(facula.Tensor, op.name + "_"):
            return None
        return lambda self, *rest: getattr(self, op.name + "_")(*rest)
    function = find(facula, op.name)
    if "inplace" not in _parameters(function):
        return None
    return lambda self, *rest: function(self, *rest, inplace=True)


def _parameters(function):
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return ()


OPS = [op for op in load_ops() if op.grad and not op.nondeterministic and _change(op)]
TARGETS = {
    "a tensor": lambda t: t.clone(),
    "a view": lambda t: facula.stack([t, t])[0],
    "a view of another shape": lambda t: t.clone().reshape(-1).view(t.shape),
    "a part of a view": lambda t: facula.cat([t.reshape(-1), t.reshape(-1)])[t.numel() :].view(
        t.shape
    ),
}


def _differentiable_samples(op):
    function = find(facula, op.name)
    for index, sample in op.numbered_samples("float64"):
        args, kwargs = make_arguments(facula, sample, "float64", seed_of(op, index), grad=True)
        if kwargs or not args or not is_tensor(args[0]) or not args[0].requires_grad:
            continue
        result = function(*args)
        if not is_tensor(result) or not result.requires_grad:
            continue
        if result.shape == args[0].shape and result.dtype == args[0].dtype:
            yield sample, args, result


def _gradients(result, leaves, order):
    """Gradients of a weighted sum, and of the weighted sum of these, and so on."""
    found = []
    for step in range(order):
        if not result.requires_grad:
            break
        weight = facula.linspace(0.5, 1.5, result.numel(), dtype=result.dtype).view(result.shape)
        grads = facula.autograd.grad(
            result, leaves, weight, create_graph=step + 1 < order, allow_unused=True
        )
        found.append(grads)
        parts = [g.reshape(-1) for g in grads if g is not None]
        if not parts:
            break
        result = facula.cat(parts)
    return found


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_inplace_gradients_are_the_functions(op, target):
    """Of both orders where the operator has two, whatever kind of tensor is changed."""
    order = 2 if op.gradgrad else 1
    for sample, args, expected in _differentiable_samples(op):
        leaves = [t for t in tensors_of(args) if is_tensor(t) and t.requires_grad]
        changed = _change(op)(TARGETS[target](args[0]), *args[1:])
        wanted, got = _gradients(expected, leaves, order), _gradients(changed, leaves, order)
        for number, (w_list, g_list) in enumerate(zip(wanted, got, strict=False)):
            for w, g in zip(w_list, g_list, strict=True):
                what = f"{sample!r}, order {number + 1}"
                zero = facula.zeros(1, dtype=expected.dtype)
                w, g = (zero if t is None else t for t in (w, g))
                if w.shape != g.shape:  # None in one of them stands for zeros
                    w, g = facula.broadcast_tensors(w, g)
                assert_same_values(g, w, what=what)
