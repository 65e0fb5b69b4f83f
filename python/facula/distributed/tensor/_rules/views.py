"""The rule of views: which dimension of the result is which of the tensor, read from strides."""

from __future__ import annotations

import facula
from facula.distributed.tensor._propagate import Alternative, everywhere
from facula.distributed.tensor.placement_types import Partial, Replicate, Shard

# The strides of a probe: dimension d has one that no sum or small multiple of others equals.
_PROBE = (1_000_003, 1_300_021, 1_700_021, 2_300_003, 3_100_011, 4_100_011, 5_300_003, 7_100_003)


def view(call, mesh_dim):
    """Another geometry of the same elements: a cut stays one where its dimension is still there."""
    found = [everywhere(call)]
    parts = call.first.num_shards_map if call.first.is_sharded() else []
    for dim, count in enumerate(parts):
        if count > 1 or Shard(dim) in call.first.placements:
            outputs = _cuts_of_results(call, dim, count)
            if None not in outputs:
                found.append(Alternative(outputs, (Shard(dim),)))
    partial = [everywhere(call, Partial(kind)) for kind in Partial.ALL_REDUCE_OPS]
    here = call.first.placements[mesh_dim]
    is_special = type(here) not in (Partial, Replicate, Shard)
    if is_special and call.op.name in ("detach", "alias"):
        partial.append(everywhere(call, here))
    return found + partial


def _cuts_of_results(call, dim, count):
    if call.op.family == "sizes" and call.get("size") is not None:
        return (_cut_of_reshaped(call.first.shape, call.outputs[0].shape, dim, count),)
    try:
        probe = call.run_on_meta(_probe)
    except Exception:  # it needs other strides (view_as_complex)
        return (None,)
    results = probe if isinstance(probe, (list, tuple)) else [probe]
    cuts = [_same_dim(result, dim, call.first.shape[dim]) for result in results]
    return tuple(None if c is None else Shard(c) for c in cuts)


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


__all__ = ["Replicate", "view"]
