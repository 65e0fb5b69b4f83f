"""How a DTensor lies along one dimension of a mesh, and how its parts are cut and joined."""

from __future__ import annotations

from dataclasses import dataclass, field

import facula
from facula.distributed import _waited_collectives as collectives

__all__ = ["Placement", "Shard", "Replicate", "Partial"]


class Placement:
    """How a tensor lies along one dimension of a mesh."""

    def is_shard(self, dim=None):
        """Whether each rank has a part; of dimension `dim` where it is given."""
        return type(self) is Shard and (dim is None or self.dim == dim)

    def is_replicate(self):
        """Whether each rank has the whole."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op=None):
        """Whether each rank has a term; of this reduction where it is given."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


def _chunk_length(size, parts):
    return -(-size // parts)


@dataclass(frozen=True, slots=True)
class Shard(Placement):
    """Each rank has a part of dimension `dim`, as `chunk` cuts it: the last parts may be empty.

    Args:
        dim (int): the dimension.

    Example:
        >>> Shard(1), Shard(1) == Shard(1), str(Shard(1))
        (Shard(dim=1), True, 'S(1)')
    """

    dim: int

    def __str__(self):
        return f"S({self.dim})"

    @staticmethod
    def local_shard_size_and_offset(curr_local_size, num_chunks, rank):
        """The length of a rank's part, and where it begins.

        Args:
            curr_local_size (int): the length of the whole.
            num_chunks (int): the number of parts.
            rank (int): which of them.

        Returns:
            (int, int)

        Example:
            >>> [Shard.local_shard_size_and_offset(5, 4, r) for r in range(4)]
            [(2, 0), (2, 2), (1, 4), (0, 5)]
        """
        length = _chunk_length(curr_local_size, num_chunks)
        start = min(curr_local_size, length * rank)
        return min(curr_local_size, start + length) - start, start

    def _local_shard_size_and_offset(self, curr_local_size, num_chunks, rank):
        return self.local_shard_size_and_offset(curr_local_size, num_chunks, rank)

    def _split_tensor(self, tensor, num_chunks, *, with_padding=True, contiguous=True):
        """All parts, and how many rows each was padded with."""
        size = tensor.shape[self.dim]
        most = _chunk_length(size, num_chunks)
        parts, pads = [], []
        for rank in range(num_chunks):
            part = self._part(tensor, num_chunks, rank)
            pads.append(most - part.shape[self.dim] if with_padding else 0)
            parts.append(_padded(part, self.dim, most) if with_padding else part)
        return [p.contiguous() if contiguous else p for p in parts], pads

    def _part(self, whole, num_chunks, rank):
        """A rank's part of a tensor: a view."""
        length, start = self.local_shard_size_and_offset(whole.shape[self.dim], num_chunks, rank)
        return whole.narrow(self.dim, start, length)

    def _joined(self, parts, size):
        """The whole of padded parts, of length `size`."""
        return facula.cat(parts, self.dim).narrow(self.dim, 0, size)


def _padded(tensor, dim, length):
    """A tensor with zeros behind it, so that dimension `dim` has a given length."""
    missing = length - tensor.shape[dim]
    if missing == 0:
        return tensor
    shape = list(tensor.shape)
    shape[dim] = missing
    return facula.cat([tensor, tensor.new_zeros(shape)], dim)


@dataclass(frozen=True, repr=False)
class _StridedShard(Shard):
    """Each rank has a part of each of `split_factor` equal pieces of dimension `dim`.

    So lie the rows of a dimension that a later dimension of the mesh has cut before this one did.

    Args:
        dim (int): the dimension.
        split_factor (int): the number of pieces.
    """

    split_factor: int = field(default=1, kw_only=True)
    sf: int = field(default=None, kw_only=True, compare=False)

    def __post_init__(self):
        if self.sf is not None:
            object.__setattr__(self, "split_factor", self.sf)

    def __repr__(self):
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self):
        return f"_S({self.dim}, {self.split_factor})"

    def _ranges(self, size, num_chunks, rank):
        """(start, length) of the rows that a rank has, in order."""
        found = []
        for piece in range(self.split_factor):
            of_piece, start = Shard.local_shard_size_and_offset(size, self.split_factor, piece)
            length, offset = Shard.local_shard_size_and_offset(of_piece, num_chunks, rank)
            found.append((start + offset, length))
        return found

    def local_shard_size_and_offset(self, curr_local_size, num_chunks, rank):
        """The length of a rank's part, and where its first row is."""
        ranges = self._ranges(curr_local_size, num_chunks, rank)
        filled = [start for start, length in ranges if length]
        return sum(length for _, length in ranges), filled[0] if filled else curr_local_size

    _local_shard_size_and_offset = local_shard_size_and_offset

    def _part(self, whole, num_chunks, rank):
        ranges = self._ranges(whole.shape[self.dim], num_chunks, rank)
        return facula.cat([whole.narrow(self.dim, s, n) for s, n in ranges], self.dim)

    def _joined(self, parts, size):
        rows = []  # where each row of the joined parts belongs
        kept = []
        for rank, part in enumerate(parts):
            ranges = self._ranges(size, len(parts), rank)
            rows += [r for start, length in ranges for r in range(start, start + length)]
            kept.append(part.narrow(self.dim, 0, sum(length for _, length in ranges)))
        order = sorted(range(size), key=rows.__getitem__)
        return facula.cat(kept, self.dim).index_select(self.dim, facula.tensor(order))


@dataclass(frozen=True)
class Replicate(Placement):
    """Each rank has the whole tensor."""

    def __str__(self):
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """Each rank has a tensor; all of them, reduced by `reduce_op`, are the whole.

    Args:
        reduce_op (str): "sum", "avg", "max", "min" or "product".
    """

    reduce_op: str = "sum"

    LINEAR_REDUCE_OPS = ("sum", "avg")
    ALL_REDUCE_OPS = ("sum", "avg", "min", "max", "product")

    def __repr__(self):
        return f"{type(self).__name__}({self.reduce_op})"

    def __str__(self):
        return f"P({self.reduce_op})"

    def _reduce_value(self, tensor, mesh, mesh_dim):
        """The whole, at all ranks."""
        return collectives.all_reduce(tensor, self.reduce_op, (mesh, mesh_dim))

    def _reduce_shard_value(self, tensor, mesh, mesh_dim, shard_spec):
        """This rank's part of the whole."""
        count = mesh.size(mesh_dim)
        parts, pads = shard_spec._split_tensor(tensor, count)
        reduced = collectives.reduce_scatter_tensor(
            facula.cat(parts, shard_spec.dim), self.reduce_op, shard_spec.dim, (mesh, mesh_dim)
        )
        pad = pads[mesh.get_local_rank(mesh_dim)]
        return reduced.narrow(shard_spec.dim, 0, reduced.shape[shard_spec.dim] - pad)

    def _partition_value(self, tensor, mesh, mesh_dim):
        """A term of which all ranks have one, of a whole that all have."""
        if self.reduce_op != "sum":
            return tensor
        if tensor.is_floating_point() or tensor.is_complex():
            return tensor / mesh.size(mesh_dim)
        # Integers cannot be cut into equal terms.
        return tensor if mesh.get_local_rank(mesh_dim) == 0 else facula.zeros_like(tensor)


@dataclass(frozen=True, repr=False)
class _NormPartial(Partial):
    """Each rank has the norm of its part: powers of them add up to that of the norm.

    Args:
        reduce_op (str): "sum".
        norm_type (float): the power.
    """

    norm_type: float = field(default=2.0, kw_only=True)

    def __str__(self):
        return f"_NormP({self.norm_type:g})"

    def _reduce_value(self, tensor, mesh, mesh_dim):
        power = super()._reduce_value(tensor**self.norm_type, mesh, mesh_dim)
        return power ** (1.0 / self.norm_type)

    def _reduce_shard_value(self, tensor, mesh, mesh_dim, shard_spec):
        power = super()._reduce_shard_value(tensor**self.norm_type, mesh, mesh_dim, shard_spec)
        return power ** (1.0 / self.norm_type)

    def _partition_value(self, tensor, mesh, mesh_dim):
        return tensor / mesh.size(mesh_dim) ** (1.0 / self.norm_type)
