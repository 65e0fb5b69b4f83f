"""Sharded data parallel: parameters, gradients and optimizer state cut over ranks."""

from __future__ import annotations

from facula.distributed.fsdp._fully_shard import *  # noqa: F403
from facula.distributed.fsdp._fully_shard import __all__ as _of_fully_shard
from facula.distributed.fsdp.api import *  # noqa: F403
from facula.distributed.fsdp.api import __all__ as _of_api
from facula.distributed.fsdp.fully_sharded_data_parallel import (  # noqa: F401
    FlatParameter,
    FullyShardedDataParallel,
    OptimStateKeyType,
)

__all__ = [*_of_fully_shard, *_of_api, "FullyShardedDataParallel", "OptimStateKeyType"]
