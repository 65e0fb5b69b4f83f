"""Shapes of parts: what each rank has of a global tensor, and where it begins."""

from __future__ import annotations

import facula
from facula.distributed.tensor.placement_types import Shard, _StridedShard


def compute_local_shape_and_global_offset(global_shape, mesh, placements, skip_offset=False):
    """The shape of this rank's part, and where it begins in the global tensor.

    Args:
        global_shape (sequence of int): the shape of the whole.
        mesh (DeviceMesh): the ranks.
        placements (sequence of Placement): one for each dimension of the mesh.
        skip_offset (bool): leave the second result empty.

    Returns:
        (tuple of int, tuple of int): both (0,) and () for a rank that is not in the mesh.

    Example:
        >>> def work(rank):
        ...     mesh = facula.distributed.init_device_mesh("cpu", (2,))
        ...     return compute_local_shape_and_global_offset((5, 3), mesh, [Shard(0)])
        >>> facula.distributed.threads.run(work, 2)
        [((3, 3), (0, 0)), ((2, 3), (3, 0))]
    """
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        return (0,), ()
    return local_shape_and_offset(global_shape, mesh.shape, coordinate, placements, skip_offset)


def local_shape_and_offset(global_shape, mesh_shape, coordinate, placements, skip_offset=False):
    """`compute_local_shape_and_global_offset` of the rank at a coordinate of the mesh."""
    shape, offset = list(global_shape), [0] * len(global_shape)
    rows = {}  # dimension -> the rows of it that the rank has, where they are not consecutive
    for i, placement in enumerate(placements):
        if not isinstance(placement, Shard):
            continue
        dim, size = placement.dim, shape[placement.dim]
        length, start = placement._local_shard_size_and_offset(size, mesh_shape[i], coordinate[i])
        if isinstance(placement, _StridedShard) and not skip_offset:
            ranges = placement._ranges(size, mesh_shape[i], coordinate[i])
            before = rows.get(dim, range(offset[dim], offset[dim] + size))
            rows[dim] = [before[r] for s, n in ranges for r in range(s, s + n)]
            offset[dim] = rows[dim][0] if rows[dim] else global_shape[dim]
        elif dim in rows:
            rows[dim] = rows[dim][start : start + length]
            offset[dim] = rows[dim][0] if rows[dim] else global_shape[dim]
        else:
            offset[dim] += start
        shape[dim] = length
    return tuple(shape), () if skip_offset else tuple(offset)


def compute_local_shape(global_shape, mesh, placements):
    """The shape of this rank's part."""
    return compute_local_shape_and_global_offset(global_shape, mesh, placements, True)[0]


def compute_local_stride(global_stride, mesh, placements):
    """The strides of this rank's part, if all parts have equal lengths.

    Args:
        global_stride (tuple of int): the strides of the whole.
        mesh (DeviceMesh): the ranks.
        placements (sequence of Placement): one for each dimension of the mesh.

    Returns:
        tuple of int
    """
    divisors = [1] * len(global_stride)
    for i, placement in enumerate(placements):
        if not isinstance(placement, Shard):
            continue
        for dim, step in enumerate(global_stride):
            if step > global_stride[placement.dim]:
                divisors[dim] *= mesh.size(i)
    return tuple(step // d for step, d in zip(global_stride, divisors, strict=True))


def compute_global_tensor_info(tensor, mesh, placements):
    """The shape and strides of the whole of which all ranks have parts of equal lengths.

    Args:
        tensor (Tensor): this rank's part.
        mesh (DeviceMesh): the ranks.
        placements (sequence of Placement): one for each dimension of the mesh.

    Returns:
        (list of int, list of int)

    Raises:
        RuntimeError: a placement names a dimension that the tensor does not have.
    """
    shape, stride = list(tensor.shape), list(tensor.stride())
    for i, placement in enumerate(placements):
        if not isinstance(placement, Shard):
            continue
        dim = placement.dim
        if not -tensor.dim() <= dim < tensor.dim():
            raise RuntimeError(
                f"from_local(): expected placements of dimensions below {tensor.dim()}; "
                f"got {placement} at place {i}"
            )
        step = stride[dim]
        shape[dim] *= mesh.size(i)
        for other in range(len(stride)):
            if other != dim and stride[other] >= step and stride[other] > 0:
                stride[other] *= mesh.size(i)
    return shape, stride


def normalized(placements, ndim):
    """Placements that count dimensions from the front."""
    return tuple(
        _with_dim(p, p.dim + ndim) if isinstance(p, Shard) and p.dim < 0 else p for p in placements
    )


def _with_dim(shard, dim):
    if isinstance(shard, _StridedShard):
        return _StridedShard(dim, split_factor=shard.split_factor)
    return Shard(dim)


def contiguous_strides(shape):
    """The strides of a contiguous tensor of a shape."""
    return facula.empty(shape, device="meta").stride()


__all__ = [
    "compute_global_tensor_info",
    "compute_local_shape",
    "compute_local_shape_and_global_offset",
    "compute_local_stride",
]
