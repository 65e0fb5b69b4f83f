"""register_sharding: a program's own rule for an operator."""

from __future__ import annotations

from facula.distributed.tensor import _dispatch
from facula.distributed.tensor._operators import operator_of
from facula.distributed.tensor._propagate import Alternative
from facula.distributed.tensor._rules import registered
from facula.distributed.tensor.placement_types import Replicate


def register_sharding(op):
    """Give an operator a rule: placements along one dimension of a mesh that it can compute with.

    Args:
        op (OpOverload or list of OpOverload): the operators.

    Returns:
        callable: a decorator for a function that gets the operator's arguments, with a DTensorSpec
            for each DTensor, and returns a list of pairs: placements of the results, and of the
            arguments, None for those that are no tensors.

    Example:
        >>> @register_sharding(facula.ops.aten.trace.default)
        ... def on_whole_matrices(x):
        ...     return [([Replicate()], [Replicate()])]
    """
    overloads = list(op) if isinstance(op, (list, tuple)) else [op]

    def register(function):
        def rule(call, mesh_dim):
            args, kwargs = call.op.split(call.values)
            return [_alternative(call, pair) for pair in function(*args, **kwargs)]

        for overload in overloads:
            operator_of(overload)
            registered[overload] = rule
        _dispatch.forget_plans()
        return function

    return register


def _alternative(call, pair):
    outputs, inputs = pair
    by_name = dict(zip(call.op.names, inputs, strict=False))
    found = []
    for slot in call.slots:
        placement = by_name.get(slot.name)
        if slot.index is not None and isinstance(placement, (list, tuple)):
            placement = placement[slot.index]
        found.append(Replicate() if placement is None else placement)
    return Alternative(tuple(outputs), tuple(found))
