"""The names of `facula.distributed.fsdp` where PyTorch has them, too."""

from facula.distributed.fsdp import (  # noqa: F401
    FullyShardedDataParallel,
    OptimStateKeyType,
)
from facula.distributed.fsdp.api import *  # noqa: F403
