"""Slices of tensors along a dimension: what `scan`, `map` and `associative_scan` share."""

from __future__ import annotations

import facula
from facula.utils._pytree import tree_flatten


def tensors_of(op, name, values):
    """The leaves and the structure of nested tensors.

    Raises:
        RuntimeError: there are none, or others among them.
    """
    leaves, spec = tree_flatten(values)
    if not leaves or not all(isinstance(leaf, facula.Tensor) for leaf in leaves):
        raise RuntimeError(f"{op}(): expected {name} to be nested tensors; got {values!r}")
    return leaves, spec


def length_of(op, leaves, dim):
    """The size that tensors have in a dimension.

    Raises:
        RuntimeError: they have different ones, or none.
    """
    for leaf in leaves:
        if not -leaf.dim() <= dim < leaf.dim():
            raise RuntimeError(
                f"{op}(): expected tensors with a dimension {dim}; got shape {list(leaf.shape)}"
            )
    lengths = [leaf.shape[dim] for leaf in leaves]
    if any(n != lengths[0] for n in lengths) or lengths[0] == 0:
        raise RuntimeError(
            f"{op}(): expected tensors of one length, at least 1, in dimension {dim}; got {lengths}"
        )
    return lengths[0]


def first_rows(mode, tensors):
    """A slice of each tensor, out of the graph."""
    from facula.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

    with disable_proxy_modes_tracing():
        # A loop that was recorded without a step has none.
        return [t[0] if t.shape[0] else t.new_empty(t.shape[1:]) for t in tensors]
