"""What a DTensor is, without its data: a mesh, a placement for each of its dimensions, a shape."""

from __future__ import annotations

from typing import NamedTuple

import facula
from facula.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    _StridedShard,
)


class TensorMeta(NamedTuple):
    """The global shape, strides and type of elements."""

    shape: facula.Size
    stride: tuple
    dtype: facula.dtype


class ShardOrderEntry(NamedTuple):
    """A dimension of the tensor, and the dimensions of the mesh that cut it, outermost first."""

    tensor_dim: int
    mesh_dims: tuple


_SHORT_DTYPES = {"float": "f", "bfloat": "bf", "int": "i", "uint": "u", "complex": "c"}


def _short_dtype(dtype):
    name = str(dtype).rpartition(".")[2]
    word = name.rstrip("0123456789")
    return _SHORT_DTYPES.get(word, "b8" if word == "bool" else word) + name[len(word) :]


class DTensorSpec:
    """A mesh, a placement for each of its dimensions, and the global tensor's shape.

    Args:
        mesh (DeviceMesh): the ranks.
        placements (tuple of Placement): one for each dimension of the mesh.
        tensor_meta (TensorMeta): the global shape, strides and dtype.
        shard_order (tuple): default the order of the mesh's dimensions; no other is supported.
    """

    def __init__(
        self,
        mesh,
        placements,
        tensor_meta=None,
        shard_order=None,
        use_strided_shard_as_shard_order=None,
    ):
        self._hash = None  # every call of an operator asks for it
        self.mesh = mesh
        self.placements = tuple(placements)
        self.tensor_meta = tensor_meta
        default = self.compute_default_shard_order(self.placements)
        if shard_order is not None and tuple(shard_order) != default:
            raise NotImplementedError(
                f"DTensorSpec(): expected the order of the mesh's dimensions; got {shard_order}"
            )
        self.shard_order = default
        self.use_strided_shard_as_shard_order = bool(use_strided_shard_as_shard_order)

    @staticmethod
    def compute_default_shard_order(placements):
        """The dimensions that are cut, and by which dimensions of the mesh.

        Example:
            >>> DTensorSpec.compute_default_shard_order((Shard(1), Shard(1)))
            (ShardOrderEntry(tensor_dim=1, mesh_dims=(0, 1)),)
        """
        found = {}
        for i, placement in enumerate(placements):
            if placement.is_shard():
                found.setdefault(placement.dim, []).append(i)
        return tuple(ShardOrderEntry(d, tuple(found[d])) for d in sorted(found))

    # --- the tensor

    def _meta(self):
        if self.tensor_meta is None:
            raise ValueError("DTensorSpec: expected a tensor_meta; got none")
        return self.tensor_meta

    @property
    def shape(self):
        """The global shape."""
        return self._meta().shape

    @property
    def stride(self):
        """The global strides."""
        return self._meta().stride

    @property
    def ndim(self):
        """The number of dimensions of the tensor."""
        return len(self._meta().shape)

    # --- how it lies

    @property
    def device_mesh(self):
        """The mesh."""
        return self.mesh

    @property
    def num_shards(self):
        """The number of parts."""
        count = 1
        for i, placement in enumerate(self.placements):
            if isinstance(placement, Shard):
                count *= self.mesh.size(i)
        return count

    @property
    def dim_map(self):
        """For each dimension of the tensor the dimension of the mesh that cuts it, or -1."""
        found = [-1] * self.ndim
        for i, placement in enumerate(self.placements):
            if isinstance(placement, Shard):
                if found[placement.dim] > -1:
                    raise ValueError(f"dim_map: expected one cut a dimension; got {self}")
                found[placement.dim] = i
        return found

    @property
    def num_shards_map(self):
        """For each dimension of the tensor the number of parts."""
        found = [1] * self.ndim
        for i, placement in enumerate(self.placements):
            if isinstance(placement, Shard):
                found[placement.dim] *= self.mesh.size(i)
        return found

    @property
    def sums(self):
        """The dimensions of the mesh along which ranks have terms."""
        return [i for i, placement in enumerate(self.placements) if placement.is_partial()]

    @classmethod
    def from_dim_map(cls, mesh, dim_map, sums, tensor_meta=None):
        """The spec of which `dim_map` and `sums` are given."""
        placements = [Replicate()] * mesh.ndim
        for i in sums:
            placements[i] = Partial()
        for dim, i in enumerate(dim_map):
            if i < 0:
                continue
            if not placements[i].is_replicate():
                raise RuntimeError(
                    f"from_dim_map(): expected one use of mesh dimension {i}; got {dim_map}, {sums}"
                )
            placements[i] = Shard(dim)
        return cls(mesh, tuple(placements), tensor_meta)

    def is_replicated(self):
        """Whether each rank has the whole."""
        return all(p.is_replicate() for p in self.placements)

    def is_sharded(self):
        """Whether any dimension of the mesh cuts it."""
        return any(isinstance(p, Shard) for p in self.placements)

    def shallow_copy_with_tensor_meta(self, tensor_meta):
        """The same placements for another tensor."""
        if tensor_meta is None:
            raise AssertionError("shallow_copy_with_tensor_meta(): expected a TensorMeta; got none")
        return DTensorSpec(self.mesh, self.placements, tensor_meta)

    # --- as a value

    def _key(self):
        return self.mesh, self.placements, self.tensor_meta

    def __hash__(self):
        if self._hash is None:
            self._hash = hash(self._key())
        return self._hash

    def __eq__(self, other):
        if self is other:
            return True
        return isinstance(other, DTensorSpec) and self._key() == other._key()

    def __str__(self):
        text = "".join(self._words())
        if self.tensor_meta is None:
            return f"Spec(unknown({text}))"
        return f"Spec({_short_dtype(self.tensor_meta.dtype)}{list(self.shape)}({text}))"

    def _words(self):
        """Placements as text; a number of their order for those that cut the same dimension."""
        orders = {e.tensor_dim: e.mesh_dims for e in self.shard_order if len(e.mesh_dims) > 1}
        for i, placement in enumerate(self.placements):
            several = orders.get(placement.dim) if placement.is_shard() else None
            yield f"{placement}[{several.index(i)}]" if several else str(placement)

    def __repr__(self):
        return (
            f"DTensorSpec(mesh={self.mesh!r}, placements={self.placements}, "
            f"tensor_meta={self.tensor_meta}, shard_order={self.shard_order}, "
            f"use_strided_shard_as_shard_order={self.use_strided_shard_as_shard_order})"
        )


__all__ = ["DTensorSpec", "Placement", "ShardOrderEntry", "TensorMeta", "_StridedShard"]
