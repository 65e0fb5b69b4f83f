"""Tensors that are spread over processes: how they would lie, and that there is no group.

Placements are values, as anywhere; a DTensor is made with a DeviceMesh, of which this build has
none.
"""

from __future__ import annotations

from dataclasses import dataclass

from facula import Tensor
from facula.distributed.distributed_c10d import (  # noqa: F401  (names of this module, too)
    DeviceMesh,
    _unavailable,
    init_device_mesh,
)

__all__ = [
    "DTensor",
    "distribute_tensor",
    "distribute_module",
    "Shard",
    "Replicate",
    "Partial",
    "Placement",
    "ones",
    "empty",
    "full",
    "rand",
    "randn",
    "zeros",
]


class Placement:
    """How a tensor lies on one dimension of a mesh."""

    def is_shard(self, dim=None):
        """Whether each process has a part; of dimension `dim` where it is given."""
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self):
        """Whether each process has the whole."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op=None):
        """Whether each process has a term; of this reduction where it is given."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each process has a part of dimension `dim`.

    Example:
        >>> Shard(1), Shard(1) == Shard(1), str(Shard(1))
        (Shard(dim=1), True, 'S(1)')
    """

    dim: int

    def __str__(self):
        return f"S({self.dim})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process has the whole tensor."""

    def __str__(self):
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """Each process has a tensor; all of them, reduced by `reduce_op`, are the whole."""

    reduce_op: str = "sum"

    def __repr__(self):
        return f"Partial({self.reduce_op})"

    def __str__(self):
        return f"P({self.reduce_op})"


class DTensor(Tensor):
    """A tensor of which each process of a mesh has its part: RuntimeError in this build."""

    def __new__(cls, *args, **kwargs):
        raise _unavailable("DTensor()")

    @staticmethod
    def from_local(*args, **kwargs):
        """Make a DTensor of this process's part: RuntimeError in this build."""
        raise _unavailable("DTensor.from_local()")


def _absent(name):
    def call(*args, **kwargs):
        raise _unavailable(f"{name}()")

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{name} over the processes of a mesh: RuntimeError in this build."
    return call


distribute_tensor = _absent("distribute_tensor")
distribute_module = _absent("distribute_module")
empty, full, ones, zeros = map(_absent, ("empty", "full", "ones", "zeros"))
rand, randn = map(_absent, ("rand", "randn"))
