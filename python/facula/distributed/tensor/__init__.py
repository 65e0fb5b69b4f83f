"""Tensors that are spread over the ranks of a mesh.

A `DTensor` is used as any tensor: each rank computes on its part, and collectives run where an
operator needs more. See `docs/internals/distributed.md`.
"""

from __future__ import annotations

from facula.distributed.device_mesh import DeviceMesh, init_device_mesh  # noqa: F401
from facula.distributed.tensor._api import DTensor, distribute_module, distribute_tensor
from facula.distributed.tensor._factories import (
    empty,
    full,
    linspace,
    logspace,
    ones,
    rand,
    randn,
    zeros,
)
from facula.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

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
    "linspace",
    "logspace",
    "rand",
    "randn",
    "zeros",
]
