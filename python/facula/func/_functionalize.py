"""functionalize: a program without in-place changes out of one that has them."""

from __future__ import annotations

import functools

from facula import _C
from facula.utils._pytree import tree_flatten, tree_map, tree_unflatten


def functionalize(func, *, remove="mutations"):
    """A function that does what func does, in-place changes of its inputs included, but runs only
    operators that change nothing.

    Args:
        func (callable): of Tensors and nests of them.
        remove (str): "mutations"; or "mutations_and_views": views become copies as well. These are
            contiguous, so that, as in PyTorch, `contiguous()` of one goes on sharing with its base.

    Raises:
        RuntimeError: remove is neither.
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize(): remove must be 'mutations' (writes become pure operators) or "
            f"'mutations_and_views' (views become copies as well); got {remove!r}"
        )

    @functools.wraps(func)
    def functional(*args, **kwargs):
        leaves, spec = tree_flatten((args, kwargs))
        at = [i for i, leaf in enumerate(leaves) if isinstance(leaf, _C.Tensor)]
        inputs = [leaves[i] for i in at]
        wrappers = _C._to_functional_tensors(inputs)
        for i, w in zip(at, wrappers, strict=False):
            leaves[i] = w
        new_args, new_kwargs = tree_unflatten(leaves, spec)
        with _C._functionalize_mode(remove == "mutations_and_views"):
            result = func(*new_args, **new_kwargs)
        given = {id(w): t for w, t in zip(wrappers, inputs, strict=False)}
        _C._functional_write_back(inputs, wrappers)
        return tree_map(lambda r: _outside(r, given), result)

    return functional


def _outside(value, given):
    if not isinstance(value, _C.Tensor):
        return value
    # An input that comes back is the caller's own tensor.
    return given[id(value)] if id(value) in given else _C._from_functional_tensor(value)
