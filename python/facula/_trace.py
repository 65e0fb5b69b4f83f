"""Tracing programs into graphs of operators."""

from __future__ import annotations

from facula import _C
from facula.utils._pytree import tree_flatten


def _outputs(value):
    return [leaf for leaf in tree_flatten(value)[0] if isinstance(leaf, _C.Tensor)]


def trace(function, args, *, functionalize=False):
    """Run a function and record the operators that it calls, below autograd.

    Args:
        function (callable): of Tensors; returns a Tensor or a nest of them.
        args (sequence of Tensors): what to run it on; fake tensors under a fake mode will do.
        functionalize (bool): record a program without in-place changes. Inputs that the function
            changes are then further outputs, behind its results.

    Returns:
        facula._C._Graph: with str(), nodes, run(args), eliminate_dead_code(), lint().
    """
    args = list(args)
    with _C._trace_mode(args) as mode:
        if not functionalize:
            return mode.finish(_outputs(function(*args)))
        inputs = _C._to_functional_tensors(args)
        before = [_C._from_functional_tensor(t) for t in inputs]
        with _C._functionalize_mode(False):
            results = _outputs(function(*inputs))
        values = [_C._from_functional_tensor(t) for t in results]
        # Changes of a storage's size stay in the program, with what is then in the storage.
        sizes = [t.untyped_storage().nbytes() for t in args]
        _C._functional_write_back(args, inputs, True)
        resized = [t.untyped_storage().nbytes() != n for t, n in zip(args, sizes, strict=True)]
        after = [_C._from_functional_tensor(t) for t in inputs]
        changed = [
            new
            for new, old, done in zip(after, before, resized, strict=True)
            if new is not old and not done
        ]
        return mode.finish(values + changed)


def trace_joint(function, args, *, cotangents=None, functionalize=True):
    """The joint graph of a function and its backward pass.

    Args:
        function (callable): of Tensors; returns a Tensor or a nest of them.
        args (sequence of Tensors): those that require grad get gradients.
        cotangents (sequence of Tensors): of the outputs; ones where None.
        functionalize (bool): record a program without in-place changes.

    Returns:
        facula._C._Graph: its inputs are args and cotangents, its outputs the function's and then
        the gradients of the args that require grad.
    """
    wanted = [t.requires_grad for t in args]
    plain = [t.detach() for t in args]
    given = None if cotangents is None else list(cotangents)

    def joint(*values):
        inputs = [
            v.detach().requires_grad_() if w else v for v, w in zip(values, wanted, strict=False)
        ]
        outs = _outputs(function(*inputs))
        seeds = list(values[len(inputs) :])
        leaves = [v for v, w in zip(inputs, wanted, strict=False) if w]
        grads = _C._run_backward(
            outs, seeds or [None] * len(outs), False, False, leaves, True, False
        )
        return outs + [g for g in grads if g is not None]

    return trace(joint, plain + (given or []), functionalize=functionalize)
