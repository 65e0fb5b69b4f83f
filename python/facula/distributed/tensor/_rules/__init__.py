"""Sharding rules: which placements an operator can compute with.

A rule is a function of a Call and a dimension of the mesh that returns alternatives. It is found by
what the operator's record says of it (its flags, its family, that it is a view); operators whose
dimensions belong to each other in ways of their own have rules by name (`products.py`,
`layers.py`). What has none computes on whole tensors.
"""

from __future__ import annotations

import functools

from facula.distributed.tensor._propagate import everywhere
from facula.distributed.tensor._rules import families, layers, losses, products, views

_of_family = {
    "dims": families.along_dims,
    "dims_of_self": families.along_dims,
    "leading": families.over_leading_dims,
    "list_dims": families.joined,
    "list_new_dim": families.stacked,
    "fold1d": families.of_batch,
    "fold2d": families.of_batch,
    "fold3d": families.of_batch,
}
registered = {}  # OpOverload -> a rule that a program has given (register_sharding)


def on_whole_tensors(call, mesh_dim):
    """The rule of operators without one: everything is brought together."""
    return [everywhere(call)]


@functools.cache
def _rule_of_record(op):
    named = products.rules.get(op.name) or layers.rules.get(op.name) or losses.rules.get(op.name)
    if named is not None:
        return named
    if op.is_view:
        return views.view
    if "factory" in op.flags:
        return families.factory
    if op.is_pointwise:
        return families.pointwise
    if "keepdim" in op.names or op.name in families.reductions:
        return families.reduction
    return _of_family.get(op.family, on_whole_tensors)


def rule_of(op):
    """The rule of an operator.

    Args:
        op (Operator): the operator.

    Returns:
        callable
    """
    return registered.get(op.func) or _rule_of_record(op)
