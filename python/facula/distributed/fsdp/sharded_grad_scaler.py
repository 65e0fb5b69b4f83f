"""A gradient scaler whose processes agree on overflows: this build has no process group."""

from __future__ import annotations

from facula.amp import GradScaler
from facula.distributed.distributed_c10d import _unavailable


class ShardedGradScaler(GradScaler):
    """A GradScaler for spread parameters: RuntimeError in this build."""

    def __init__(self, *args, **kwargs):
        raise _unavailable("ShardedGradScaler()")
