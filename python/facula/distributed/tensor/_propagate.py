"""The choice of placements for a call: of all that its rule allows, those that move least data.

A rule gives alternatives for one dimension of the mesh: placements of the tensors that go in and of
those that come out. Those for several dimensions are all combinations.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from facula.distributed.tensor._dtensor_spec import DTensorSpec
from facula.distributed.tensor._redistribute import steps_between
from facula.distributed.tensor.placement_types import Partial, Replicate, Shard, _StridedShard


class Alternative(NamedTuple):
    """Placements along one dimension of the mesh: of the results, and of the arguments."""

    outputs: tuple
    inputs: tuple
    # Whether ranks must have consecutive rows: the operator looks at where a part begins.
    in_order: bool = False


class Plan(NamedTuple):
    """How a call runs: what its tensors become first, and what its results are."""

    inputs: tuple  # DTensorSpec of each tensor that goes in
    outputs: tuple  # DTensorSpec of each tensor that comes out


# A collective of n ranks takes the start-up time, then for each of its hops a latency and the time
# for a part of the data: microseconds, and bytes in a microsecond, as on one machine.
_START, _LATENCY, _BANDWIDTH = 7.0, 0.6, 80_000.0
# What a rank has is cut or made a term without communication, but not without work.
_LOCAL = 1e-3


def _collective(hops, n, size):
    return _START + hops * (_LATENCY + size / n / _BANDWIDTH)


def redistribution_cost(source, placements):
    """An estimate in microseconds of what it takes to bring a tensor to other placements.

    Args:
        source (DTensorSpec): how it lies.
        placements (tuple of Placement): how it is to lie.

    Returns:
        float: infinite where a part would become a term, which rules ask for only if they must.
    """
    if source.placements == placements:
        return 0.0
    size = source.tensor_meta.dtype.itemsize * source.shape.numel() / source.num_shards
    cost = 0.0
    for i, before, after, _ in steps_between(source.placements, placements):
        n = source.mesh.size(i)
        if isinstance(before, Shard) and after.is_partial():
            return float("inf")
        if before.is_replicate():
            cost += _LOCAL
            size /= n if isinstance(after, Shard) else 1
        elif isinstance(before, Shard):
            size *= n
            # Parts are exchanged for other parts by as many messages as there are pairs of ranks.
            cost += _collective(n - 1, n, size) + (1.0 if isinstance(after, Shard) else 0.0)
            size /= n if isinstance(after, Shard) else 1
        elif isinstance(after, Shard):
            cost += _collective(n - 1, n, size)
            size /= n
        else:
            cost += _collective(2 * (n - 1), n, size)
    return cost


def _can_be_cut(spec, placements):
    """Whether each rank gets something."""
    parts = {}
    for i, placement in enumerate(placements):
        if isinstance(placement, Shard):
            parts[placement.dim] = parts.get(placement.dim, 1) * spec.mesh.size(i)
    return all(spec.shape[d] >= n for d, n in parts.items())


def _is_in_sight(call, alternative):
    """Whether it cuts a tensor where that is cut already; other cuts are not looked for."""
    cuts = [isinstance(p, Shard) for p in alternative.inputs]
    if not any(cuts):
        return True
    return any(
        cut and placement in spec.placements
        for cut, placement, spec in zip(cuts, alternative.inputs, call.specs, strict=True)
    )


def _keeps_written(call, alternative, mesh_dim):
    """Whether the arguments that are written to stay as they are."""
    return all(
        slot.name not in call.op.written or placement == spec.placements[mesh_dim]
        for slot, spec, placement in zip(call.slots, call.specs, alternative.inputs, strict=True)
    )


def _interleaved(call, alternative, mesh_dim):
    """The same cut for a tensor whose rows are interleaved: which rows a rank has does not matter.

    None if no tensor is cut so, or if the cut dimensions do not belong to each other row by row.
    """
    here = [spec.placements[mesh_dim] for spec in call.specs]
    factors = {
        now.split_factor
        for now, cut in zip(here, alternative.inputs, strict=True)
        if isinstance(now, _StridedShard) and cut == Shard(now.dim)
    }
    if len(factors) != 1 or alternative.in_order:
        return None
    shapes = [spec.shape for spec in call.specs] + [meta and meta.shape for meta in call.outputs]
    cuts = (*alternative.inputs, *alternative.outputs)
    sizes = {
        shape[cut.dim]
        for shape, cut in zip(shapes, cuts, strict=True)
        if shape is not None and isinstance(cut, Shard)
    }
    if len(sizes) != 1:
        return None
    (factor,) = factors

    def change(cuts):
        return tuple(
            _StridedShard(c.dim, split_factor=factor) if type(c) is Shard else c for c in cuts
        )

    return Alternative(change(alternative.outputs), change(alternative.inputs))


def _alternatives(call, rule, mesh_dim):
    found = rule(call, mesh_dim)
    if any(isinstance(spec.placements[mesh_dim], _StridedShard) for spec in call.specs):
        found = found + [i for i in (_interleaved(call, a, mesh_dim) for a in found) if i]
    found = [a for a in found if _is_in_sight(call, a)]
    if not call.op.written:
        return found
    kept = [a for a in found if _keeps_written(call, a, mesh_dim)]
    terms = any(
        spec.placements[mesh_dim].is_partial()
        for slot, spec in zip(call.slots, call.specs, strict=True)
        if slot.name in call.op.written
    )
    if not kept and not terms:  # the whole is computed, and each rank takes its part of it
        return found[:1]
    if not kept:
        raise RuntimeError(
            f"{call.op.func}: expected a tensor to write to that can stay as it lies; "
            f"got {call.first.placements}, which would have to change"
        )
    return kept


def choose(call, alternatives):
    """The cheapest combination of alternatives, and of several the first.

    Args:
        call (Call): what is called.
        alternatives (list of lists of Alternative): for each dimension of the mesh.

    Returns:
        (tuple, tuple): placements of each input, and of each output.
    """
    best, least = None, None
    for combination in itertools.product(*alternatives):
        cost = 0.0
        for spec, *placements in zip(call.specs, *(a.inputs for a in combination), strict=True):
            placements = tuple(placements)
            if spec.placements != placements:
                cost += redistribution_cost(spec, placements)
                cost += 0.0 if _can_be_cut(spec, placements) else float("inf")
        if least is None or cost < least:
            best, least = combination, cost
    inputs = tuple(zip(*(a.inputs for a in best), strict=True))
    return inputs, tuple(zip(*(a.outputs for a in best), strict=True))


def plan_of(call, rule):
    """How a call runs by a rule.

    Args:
        call (Call): what is called.
        rule (callable): alternatives of a Call along a dimension of the mesh; see `_rules`.

    Returns:
        Plan
    """
    alternatives = [_alternatives(call, rule, i) for i in range(call.mesh.ndim)]
    inputs, outputs = choose(call, alternatives)
    specs = tuple(
        DTensorSpec(call.mesh, p, s.tensor_meta) for p, s in zip(inputs, call.specs, strict=True)
    )
    results = tuple(
        None if meta is None else DTensorSpec(call.mesh, p, meta)
        for p, meta in zip(outputs, call.outputs, strict=True)
    )
    return Plan(specs, results)


def everywhere(call, placement=None):
    """The alternative in which each tensor has one placement, by default the whole everywhere."""
    placement = placement or Replicate()
    return Alternative((placement,) * len(call.outputs), (placement,) * len(call.specs))


__all__ = [
    "Alternative",
    "Partial",
    "Plan",
    "choose",
    "everywhere",
    "plan_of",
    "redistribution_cost",
]
