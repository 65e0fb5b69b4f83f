"""The rule of views: which dimension of the result is which of the tensor, read from strides."""

from __future__ import annotations

import facula
from facula.distributed.tensor._propagate import Alternative, everywhere
from facula.distributed.tensor.placement_types import Partial, Shard, _StridedShard

# The strides of a probe: dimension d has one that no sum or small multiple of others equals.
_PROBE = (1_000_003, 1_300_021, 1_700_021, 2_300_003, 3_100_011, 4_100_011, 5_300_003, 7_100_003)


def view(call, mesh_dim):
    """Another geometry of the same elements: a cut stays one where its dimension is still there."""
    found = [everywhere(call), *_interleaving(call, mesh_dim)]
    parts = call.first.num_shards_map if call.first.is_sharded() else []
    for dim, count in enumerate(parts):
        if Shard(dim) in call.first.placements or _is_kept_interleaved(call, dim):
            outputs = _cuts_of_results(call, dim, count)
            if None not in outputs:
                found.append(Alternative(outputs, (Shard(dim),)))
    partial = [everywhere(call, Partial(kind)) for kind in Partial.ALL_REDUCE_OPS]
    here = call.first.placements[mesh_dim]
    if here.is_partial() and type(here) is not Partial and call.op.name in ("detach", "alias"):
        partial.append(everywhere(call, here))
    return found + partial


def _cuts_of_results(call, dim, count):
    if _is_reshape(call):
        return (_cut_of_reshaped(call.first.shape, call.outputs[0].shape, dim, count),)
    try:
        probe = call.run_on_meta(_probe)
    except Exception:  # it needs other strides (view_as_complex)
        return (None,)
    results = probe if isinstance(probe, (list, tuple)) else [probe]
    cuts = [_same_dim(result, dim, call.first.shape[dim]) for result in results]
    return tuple(None if c is None else Shard(c) for c in cuts)


def _is_kept_interleaved(call, dim):
    """Whether a dimension that is cut in interleaved rows is that of another tensor, unchanged."""
    return not _is_reshape(call) and any(
        isinstance(p, _StridedShard) and p.dim == dim for p in call.first.placements
    )


def _is_reshape(call):
    return call.op.family == "sizes" and call.get("size") is not None


def _interleaving(call, mesh_dim):
    """A cut inside of dimensions that are merged interleaves rows; splitting them undoes it."""
    here, spec = call.first.placements[mesh_dim], call.first
    if not _is_reshape(call) or not isinstance(here, Shard) or 0 in spec.shape:
        return []
    if sum(isinstance(p, Shard) for p in spec.placements) > 1:
        return []  # how rows of several cuts interleave depends on all of them
    count, after = spec.mesh.size(mesh_dim), call.outputs[0].shape
    if isinstance(here, _StridedShard):
        cut = _cut_of_split(spec.shape, after, here, count)
    else:
        cut = _cut_of_merged(spec.shape, after, here.dim, count)
    return [] if cut is None else [Alternative((cut,), (here,))]


def _cut_of_merged(shape, after, dim, count):
    """The cut of the dimension that takes up `dim` and some before it."""
    below, own = shape[dim + 1 :].numel(), shape[dim:].numel()
    if shape[dim] % count:
        return None
    for d, size in enumerate(after):
        low, top = after[d + 1 :].numel(), after[d:].numel()
        if size > 1 and low <= below and top > own and top % own == 0:
            begins = [shape[:i].numel() for i in range(dim + 1)]
            if shape.numel() // top not in begins:
                return None  # a dimension before it is not taken up as a whole
            return _StridedShard(d, split_factor=top // own)
    return None


def _cut_of_split(shape, after, here, count):
    """The dimension whose rows were interleaved, where what was merged is split again."""
    top, low = shape[here.dim :].numel(), shape[here.dim + 1 :].numel()
    for d, size in enumerate(after):
        if after[d:].numel() * here.split_factor == top and size > 1:
            inside = after[d + 1 :].numel() >= low and size % count == 0
            return Shard(d) if inside else None
    return None


def _probe(spec):
    strides = [_PROBE[d % len(_PROBE)] * (1 + d // len(_PROBE)) for d in range(spec.ndim)]
    return facula.empty_strided(spec.shape, strides, dtype=spec.tensor_meta.dtype, device="meta")


def _same_dim(result, dim, size):
    stride = _PROBE[dim % len(_PROBE)] * (1 + dim // len(_PROBE))
    found = [
        d for d in range(result.dim()) if result.stride(d) == stride and result.shape[d] == size
    ]
    return found[0] if len(found) == 1 else None


def _cut_of_reshaped(shape, after, dim, count):
    """Where a cut of a dimension is after `view`: what begins where it does, most significant."""
    if 0 in shape or shape[dim] == 1:
        return None
    top = shape[dim:].numel()
    for d, size in enumerate(after):
        if size == 1 or after[d:].numel() != top:
            continue
        same = size == shape[dim] and after[d + 1 :].numel() == shape[dim + 1 :].numel()
        if same or (shape[dim] % count == 0 and size % count == 0):
            return Shard(d)
    return None
