"""A mode under which indexing by tensors never asks a tensor for its number."""

from __future__ import annotations

import facula
from facula.overrides import TorchFunctionMode
from facula.utils._pytree import tree_leaves

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(TorchFunctionMode):
    """While it is on, `x[i, j]` with tensors alone is `aten.index`, also where they have no
    dimensions: masks are written as functions of one position, and `vmap` gives them all.

    Example:
        >>> x = facula.arange(6).reshape(2, 3)
        >>> with TransformGetItemToIndex():
        ...     facula.vmap(lambda i: x[i, i])(facula.arange(2))
        tensor([0, 4])
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is facula.Tensor.__getitem__:
            index = tree_leaves(args[1])
            if index and all(isinstance(one, facula.Tensor) for one in index):
                return facula.ops.aten.index(args[0], index)
        return func(*args, **(kwargs or {}))
