"""Along which ranks parameters are cut, and along which they are copied."""

from __future__ import annotations

from dataclasses import dataclass

import facula
from facula.distributed.device_mesh import DeviceMesh, init_device_mesh
from facula.distributed.tensor.placement_types import Replicate


@dataclass
class DataParallelMesh:
    """The ranks of data parallelism.

    Args:
        mesh (DeviceMesh): of one dimension (shards), or two (copies of shards, shards).
        shard_dim (int): the dimension along which parameters are cut, or None.
        replicate_dim (int): the dimension along which they are copied, or None.
    """

    mesh: DeviceMesh
    shard_dim: int | None
    replicate_dim: int | None = None

    def _group(self, dim):
        return None if dim is None else self.mesh.get_group(dim)

    def _size(self, dim):
        return 1 if dim is None else self.mesh.size(dim)

    @property
    def shard_group(self):
        """The process group of the ranks that have the other shards."""
        return self._group(self.shard_dim)

    @property
    def replicate_group(self):
        """The process group of the ranks that have the same shards."""
        return self._group(self.replicate_dim)

    @property
    def shard_size(self):
        """The number of shards."""
        return self._size(self.shard_dim)

    @property
    def replicate_size(self):
        """The number of copies of each shard."""
        return self._size(self.replicate_dim)

    @property
    def shard_rank(self):
        """The number of this rank's shard."""
        return 0 if self.shard_dim is None else self.mesh.get_local_rank(self.shard_dim)

    @property
    def simulates(self):
        """Whether no rank computes anything, and parameters need no data."""
        group = self.shard_group or self.replicate_group
        return group is not None and group.simulates

    def placements(self, shard):
        """How parameters that are cut by `shard` lie on the mesh."""
        return tuple(shard if i == self.shard_dim else Replicate() for i in range(self.mesh.ndim))


def _along(mesh, names):
    """The mesh of some dimensions as one, or None for no dimensions."""
    if not names:
        return None
    return mesh[names]._flatten() if len(names) > 1 else mesh[names]


def data_parallel_mesh(mesh, dp_mesh_dims=None):
    """The DataParallelMesh of the arguments of `fully_shard`.

    Args:
        mesh (DeviceMesh): default all ranks.
        dp_mesh_dims (DataParallelMeshDims): which of its dimensions.

    Returns:
        DataParallelMesh

    Raises:
        ValueError: the mesh has more than two dimensions, and none are named.
    """
    if mesh is None:
        world = facula.distributed.get_world_size()
        mesh = init_device_mesh("cpu", (world,))
    if dp_mesh_dims is not None:
        names, copies = dp_mesh_dims.shard_names, dp_mesh_dims.replicate_names
        shard, replicate = _along(mesh, names), _along(mesh, copies)
        if shard is None:
            return DataParallelMesh(replicate, None, 0)
        if replicate is None:
            return DataParallelMesh(shard, 0)
        if len(names) > 1 or len(copies) > 1:
            raise NotImplementedError(
                "fully_shard(): expected one dimension to shard and one to replicate; "
                f"got {dp_mesh_dims}"
            )
        return DataParallelMesh(mesh[(*copies, *names)], 1, 0)
    if mesh.ndim == 1:
        return DataParallelMesh(mesh, 0)
    if mesh.ndim == 2:
        return DataParallelMesh(mesh, 1, 0)
    raise ValueError(f"fully_shard(): expected a mesh of one or two dimensions; got {mesh}")
