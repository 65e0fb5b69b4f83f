"""Tensors that are spread over the ranks of a mesh.

A `DTensor` is used as any tensor: each rank computes on its part, and collectives run where an
operator needs more. See `docs/internals/distributed.md`.
"""

from __future__ import annotations

import facula
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


def _allow_in_checkpoints():
    """Let `facula.load(weights_only=True)` make what a pickled DTensor is made of."""
    from facula.distributed import device_mesh
    from facula.distributed.tensor import _api, _dtensor_spec

    facula.serialization.add_safe_globals(
        [
            DTensor,
            Partial,
            Replicate,
            Shard,
            _api._remake,
            _dtensor_spec.DTensorSpec,
            _dtensor_spec.TensorMeta,
            _dtensor_spec.ShardOrderEntry,
            device_mesh._remake,
        ]
    )


_allow_in_checkpoints()
