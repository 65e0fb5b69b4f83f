"""Further uses of DTensors: functions on parts, rules of a program's own, context parallelism."""

from __future__ import annotations

from facula.distributed.tensor._dispatch import implicit_replication
from facula.distributed.tensor.experimental._attention import context_parallel
from facula.distributed.tensor.experimental._func_map import local_map
from facula.distributed.tensor.experimental._register_sharding import register_sharding

__all__ = ["context_parallel", "implicit_replication", "local_map", "register_sharding"]
