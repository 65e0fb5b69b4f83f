"""The names of `facula.distributed.fsdp` where PyTorch has them, too."""

from facula.distributed.fsdp import *  # noqa: F403
from facula.distributed.fsdp import (  # noqa: F401
    BackwardPrefetch,
    CPUOffload,
    FullyShardedDataParallel,
    MixedPrecision,
    ShardingStrategy,
    StateDictType,
)
