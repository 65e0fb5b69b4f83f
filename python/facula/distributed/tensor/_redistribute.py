"""From one placement to another: the steps, one dimension of the mesh at a time."""

from __future__ import annotations

import facula
from facula.distributed import _waited_collectives as collectives
from facula.distributed.tensor._dtensor_spec import DTensorSpec
from facula.distributed.tensor._utils import compute_local_shape
from facula.distributed.tensor.placement_types import (
    Partial,
    Replicate,
    Shard,
    _padded,
)


def steps_between(source, target):
    """The changes that lead from placements to others: (mesh dimension, before, after, all before).

    A dimension of the tensor that several dimensions of the mesh cut is cut by the outermost first.
    So the inner cuts are undone before the outer ones change, and made again after them.

    Args:
        source, target (sequence of Placement): as many as the mesh has dimensions.

    Example:
        >>> [step[:3] for step in steps_between([Shard(0), Replicate()], [Replicate(), Shard(0)])]
        [(0, Shard(dim=0), Replicate()), (1, Replicate(), Shard(dim=0))]
    """
    current, steps = list(source), []

    def change(i, after):
        if current[i] != after:
            steps.append((i, current[i], after, tuple(current)))
            current[i] = after

    for i in reversed(range(len(current))):
        if isinstance(current[i], Shard) and not _can_stay(i, current, target):
            change(i, target[i] if _can_enter(i, current, target) else Replicate())
    for i, after in enumerate(target):
        change(i, after)
    return steps


def _cuts(placement, dim):
    return isinstance(placement, Shard) and placement.dim == dim


def _outer_cuts_are_final(i, dim, current, target):
    return all(
        current[j] == target[j] for j in range(i) if _cuts(current[j], dim) or _cuts(target[j], dim)
    )


def _can_stay(i, current, target):
    return current[i] == target[i] and _outer_cuts_are_final(i, current[i].dim, current, target)


def _can_enter(i, current, target):
    """Whether the target's cut can be made at once, inside of the outer and outside of no other."""
    if not isinstance(target[i], Shard):
        return True
    dim = target[i].dim
    inner = any(_cuts(current[j], dim) for j in range(i + 1, len(current)))
    return not inner and _outer_cuts_are_final(i, dim, current, target)


def redistribute_local_tensor(local, source, target):
    """This rank's part under other placements.

    Args:
        local (Tensor): the part.
        source, target (DTensorSpec): of the same mesh.

    Returns:
        Tensor

    Raises:
        NotImplementedError: the meshes differ.
    """
    mesh = source.mesh
    if mesh != target.mesh:
        raise NotImplementedError(
            f"redistribute(): expected the mesh of the tensor; got {target.mesh} for {mesh}"
        )
    if mesh.get_coordinate() is None:
        return local
    for i, before, after, placements in steps_between(source.placements, target.placements):
        others = [Replicate() if j == i else p for j, p in enumerate(placements)]
        logical = compute_local_shape(source.shape, mesh, others)
        local = _change(local, logical, mesh, i, before, after)
    return local


def _change(local, logical, mesh, i, before, after):
    """One step, for a tensor that would have the shape `logical` if nothing cut it along `i`."""
    if mesh.size(i) == 1:
        return local
    if before.is_replicate():
        return _from_whole(local, mesh, i, after)
    if isinstance(before, Partial):
        return _from_terms(local, logical, mesh, i, before, after)
    if before.is_shard() and after.is_shard():
        return _exchanged(local, logical, mesh, i, before, after)
    if before.is_shard() and after.is_partial("sum"):
        return _among_zeros(local, logical, mesh, i, before)
    return _from_whole(_gathered(local, logical, mesh, i, before), mesh, i, after)


def _from_whole(local, mesh, i, after):
    if isinstance(after, Shard):
        return after._part(local, mesh.size(i), mesh.get_local_rank(i)).contiguous()
    if isinstance(after, Partial):
        return after._partition_value(local, mesh, i)
    return local


def _from_terms(local, logical, mesh, i, before, after):
    if after.is_shard():
        return before._reduce_shard_value(local, mesh, i, after)
    return _from_whole(before._reduce_value(local, mesh, i), mesh, i, after)


def _gathered(local, logical, mesh, i, shard):
    """The whole, from the parts of all ranks."""
    size, count = logical[shard.dim], mesh.size(i)
    most = max(shard._local_shard_size_and_offset(size, count, r)[0] for r in range(count))
    part = _padded(local, shard.dim, most).contiguous()
    whole = collectives.all_gather_tensor(part, 0, (mesh, i))
    whole = whole.view(count, *part.shape)
    return shard._joined(list(whole.unbind(0)), size).contiguous()


def _exchanged(local, logical, mesh, i, before, after):
    """Parts of another dimension: each rank sends each other one a block."""
    count, rank = mesh.size(i), mesh.get_local_rank(i)
    blocks = [after._part(local, count, r).contiguous() for r in range(count)]
    mine = after._local_shard_size_and_offset(logical[after.dim], count, rank)[0]
    shapes = []
    for r in range(count):
        shape = list(logical)
        shape[before.dim] = before._local_shard_size_and_offset(logical[before.dim], count, r)[0]
        shape[after.dim] = mine
        shapes.append(shape)
    sizes = [facula.Size(s).numel() for s in shapes]
    sent = facula.cat([b.reshape(-1) for b in blocks])
    received = collectives.all_to_all_single(sent, sizes, [b.numel() for b in blocks], (mesh, i))
    parts = [p.view(s) for p, s in zip(received.split(sizes), shapes, strict=True)]
    return facula.cat(parts, before.dim)


def _among_zeros(local, logical, mesh, i, shard):
    """The part at its place in a tensor of zeros: a term of the whole, without communication."""
    length, start = shard._local_shard_size_and_offset(
        logical[shard.dim], mesh.size(i), mesh.get_local_rank(i)
    )
    whole = local.new_zeros(logical)
    whole.narrow(shard.dim, start, length).copy_(local)
    return whole


class Redistribute(facula.autograd.Function):
    """`DTensor.redistribute`: its derivative redistributes the gradient back."""

    @staticmethod
    def forward(ctx, tensor, mesh, placements, forward_dtype=None, backward_dtype=None):
        from facula.distributed.tensor._api import DTensor

        spec = tensor._spec
        ctx.spec, ctx.dtype = spec, tensor.dtype
        ctx.backward_dtype = backward_dtype or tensor.dtype
        local = tensor._local_tensor
        if forward_dtype is not None and forward_dtype != local.dtype:
            local = local.to(forward_dtype)
            meta = spec.tensor_meta._replace(dtype=forward_dtype)
            spec = DTensorSpec(spec.mesh, spec.placements, meta)
        target = DTensorSpec(mesh, placements, spec.tensor_meta)
        moved = local
        if spec.placements != target.placements or mesh != spec.mesh:
            moved = redistribute_local_tensor(local, spec, target)
        return DTensor(moved.view_as(moved), target)

    @staticmethod
    def backward(ctx, grad):
        from facula.distributed.tensor._api import DTensor

        local = grad._local_tensor
        if ctx.backward_dtype != local.dtype:
            local = local.to(ctx.backward_dtype)
        meta = grad._spec.tensor_meta._replace(dtype=ctx.backward_dtype)
        source = DTensorSpec(grad._spec.mesh, grad._spec.placements, meta)
        target = DTensorSpec(
            source.mesh, gradient_placements(source.placements, ctx.spec.placements), meta
        )
        moved = redistribute_local_tensor(local, source, target).to(ctx.dtype)
        meta = meta._replace(dtype=ctx.dtype)
        made = DTensor(moved, DTensorSpec(source.mesh, target.placements, meta))
        return made, None, None, None, None


def gradient_placements(have, wanted):
    """Where a gradient goes whose tensor lies as `wanted`.

    Each of the terms of a sum has the gradient of the sum: it is the whole at all ranks, or stays a
    sum itself.
    """
    return tuple(
        (before if before.is_partial() else Replicate()) if after.is_partial() else after
        for before, after in zip(have, wanted, strict=True)
    )


__all__ = ["Redistribute", "gradient_placements", "redistribute_local_tensor", "steps_between"]
