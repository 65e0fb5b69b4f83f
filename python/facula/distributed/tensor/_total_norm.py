"""The norm of many DTensors with one collective for each dimension of their mesh."""

from __future__ import annotations

import facula
from facula.distributed import _waited_collectives as collectives
from facula.distributed.tensor._api import DTensor
from facula.distributed.tensor.placement_types import Partial, Replicate, Shard


def total_norm(tensors, norm_type, norm_of):
    """The norm of the norms of DTensors, from the norms of this rank's parts.

    Args:
        tensors (list of DTensor): on one mesh.
        norm_type (float): the p of the norm.
        norm_of (callable): the norm of a list of plain tensors.

    Returns:
        DTensor: the same at all ranks; for norms of infinity each rank's, of which the maximum is
        to be taken. None for tensors that are not just cut and copied.
    """
    mesh = tensors[0].device_mesh
    is_max = norm_type == float("inf")
    if not (norm_type > 0 and all(_is_plain(t, mesh) for t in tensors)):
        return None
    cut = [i for i in range(mesh.ndim) if any(isinstance(t.placements[i], Shard) for t in tensors)]
    parts = [t.to_local() for t in tensors if is_max or _is_mine(t, cut)]
    total = norm_of([p for p in parts if p.numel()]) if any(p.numel() for p in parts) else None
    if total is None:
        total = facula.zeros((), dtype=_dtype_of_norm(tensors), device=tensors[0].device)
    if is_max:
        places = [Partial("max") if i in cut else Replicate() for i in range(mesh.ndim)]
        return DTensor.from_local(total, mesh, places, run_check=False)
    if cut:
        powers = total.pow(norm_type)
        for i in cut:
            powers = collectives.all_reduce(powers, "sum", (mesh, i))
        total = powers.pow(1 / norm_type)
    return DTensor.from_local(total, mesh, [Replicate()] * mesh.ndim, run_check=False)


def _is_plain(tensor, mesh):
    """Whether each element of it is at one rank, or the same at several."""
    same = isinstance(tensor, DTensor) and tensor.device_mesh == mesh
    return same and all(isinstance(p, (Shard, Replicate)) for p in tensor.placements)


def _is_mine(tensor, cut):
    """Whether this rank counts its part: of the ranks that have the same one the first does."""
    coordinate = tensor.device_mesh.get_coordinate()
    return all(not tensor.placements[i].is_replicate() or coordinate[i] == 0 for i in cut)


def _dtype_of_norm(tensors):
    dtypes = [t.dtype for t in tensors]
    made = facula.zeros((), dtype=dtypes[0])
    for dtype in dtypes[1:]:
        made = made + facula.zeros((), dtype=dtype)
    return made.abs().dtype
