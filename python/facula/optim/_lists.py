"""The same list operations in two ways: one operator over all tensors, or a loop.

An algorithm is written once against these. The loop serves complex, sparse and differentiable
cases, for which the operators over lists are not made.
"""

from __future__ import annotations

import facula


class _Foreach:
    """Every method `name` is the operator `_foreach_<name>`."""

    def __getattr__(self, name):
        op = getattr(facula, f"_foreach_{name}")
        setattr(self, name, op)
        return op


def _at(value, i):
    return value[i] if isinstance(value, (list, tuple)) else value


class _Loop:
    """Every method `name` calls the tensor method `name` on each element."""

    # The last argument of these is the keyword `value` of the tensor method.
    _with_value = ("addcmul", "addcmul_", "addcdiv", "addcdiv_")

    def __getattr__(self, name):
        takes_value = name in self._with_value

        def call(tensors, *args, **kwargs):
            results = []
            for i, tensor in enumerate(tensors):
                picked = [_at(arg, i) for arg in args]
                if takes_value and len(picked) == 3:
                    kwargs = {"value": picked.pop()}
                results.append(_call(tensor, name, picked, kwargs))
            return results

        setattr(self, name, call)
        return call


def _call(tensor, name, args, kwargs):
    value = kwargs.get("value")
    if isinstance(value, facula.Tensor):
        # A tensor factor cannot be a `value`; the product keeps its gradient.
        first, second = args
        product = first * second if name.startswith("addcmul") else first / second
        return getattr(tensor, "add_" if name.endswith("_") else "add")(product * value)
    return getattr(tensor, name)(*args, **kwargs)


FOREACH = _Foreach()
LOOP = _Loop()


def split_by_kind(*lists):
    """Split parallel lists by device and dtype of the first two; yields lists of the same kind.

    Args:
        lists: equally long lists; the first holds parameters, the second gradients.
    """
    params, grads = lists[0], lists[1]
    if not params:
        return
    first = params[0]
    dtype, device = first.dtype, first.device
    if all(
        p.dtype == dtype and p.device == device and g.dtype == dtype
        for p, g in zip(params, grads, strict=True)
    ):
        yield lists
        return
    kinds = {}
    for i, (p, g) in enumerate(zip(params, grads, strict=True)):
        kinds.setdefault((p.device, p.dtype, g.dtype), []).append(i)
    for indices in kinds.values():
        yield tuple([values[i] for i in indices] if values else [] for values in lists)


def backend(params, grads, differentiable):
    """FOREACH where the list operators serve these tensors, else LOOP."""
    if differentiable:
        return LOOP
    if any(p.is_complex() for p in params) or any(g.is_sparse for g in grads):
        return LOOP
    return FOREACH


def can_fuse(params, grads, differentiable):
    """Whether a fused operator serves these tensors: real, dense, not differentiated."""
    if differentiable:
        return False
    for p, g in zip(params, grads, strict=True):
        if g.is_sparse or not p.is_floating_point() or p.dtype != g.dtype:
            return False
    return True


def view_as_real(*lists):
    """The lists with complex tensors seen as pairs of real numbers."""
    return [
        [
            facula.view_as_real(t) if isinstance(t, facula.Tensor) and t.is_complex() else t
            for t in values
        ]
        for values in lists
    ]
