"""Settings of `fully_shard`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import facula

_MODULE = "facula.distributed.fsdp"


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of computation, of the reduction of gradients, and of outputs.

    Args:
        param_dtype (dtype): parameters are cast to it before they are gathered; default their own.
        reduce_dtype (dtype): gradients are cast to it before they are reduced; default theirs.
        output_dtype (dtype): floating-point outputs of forward are cast to it.
        cast_forward_inputs (bool): cast floating-point inputs of forward to `param_dtype`.
        param_dtype_override_fn (callable): called with each parameter; what it returns is the
            parameter's `param_dtype`, unless it is None.

    Example:
        >>> MixedPrecisionPolicy(param_dtype=facula.bfloat16).reduce_dtype is None
        True
    """

    param_dtype: facula.dtype | None = None
    reduce_dtype: facula.dtype | None = None
    output_dtype: facula.dtype | None = None
    cast_forward_inputs: bool = True
    param_dtype_override_fn: Callable | None = field(default=None, kw_only=True)


@dataclass
class OffloadPolicy:
    """Shards stay on the device of the mesh."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Shards, their gradients and the optimizer's state lie in the CPU's memory.

    Args:
        pin_memory (bool): page-locked memory, where the mesh is of another device.
    """

    pin_memory: bool = True


@dataclass(frozen=True)
class DataParallelMeshDims:
    """The dimensions of a mesh along which `fully_shard` cuts, and copies.

    Args:
        shard (str or tuple of str): parameters are cut along them.
        replicate (str or tuple of str): parameters are the same along them.

    Raises:
        ValueError: neither is given.
    """

    shard: str | tuple[str, ...] | None = None
    replicate: str | tuple[str, ...] | None = None

    def __post_init__(self):
        if self.shard is None and self.replicate is None:
            raise ValueError("DataParallelMeshDims(): expected shard or replicate; got neither")

    @property
    def shard_names(self):
        """The names of the dimensions that cut, a tuple."""
        return (self.shard,) if isinstance(self.shard, str) else tuple(self.shard or ())

    @property
    def replicate_names(self):
        """The names of the dimensions that copy, a tuple."""
        named = self.replicate
        return (named,) if isinstance(named, str) else tuple(named or ())


for _each in (MixedPrecisionPolicy, OffloadPolicy, CPUOffloadPolicy, DataParallelMeshDims):
    _each.__module__ = _MODULE
