"""Optimizers that share their work among processes: this build has no process group."""

from __future__ import annotations

from facula.distributed.distributed_c10d import _unavailable
from facula.optim import Optimizer

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]


class _AbsentOptimizer(Optimizer):
    def __init__(self, *args, **kwargs):
        raise _unavailable(f"{type(self).__name__}()")


class ZeroRedundancyOptimizer(_AbsentOptimizer):
    """An optimizer whose state is spread over processes: RuntimeError in this build."""


class PostLocalSGDOptimizer(_AbsentOptimizer):
    """An optimizer that averages models between local steps: RuntimeError in this build."""


class DistributedOptimizer(_AbsentOptimizer):
    """An optimizer of parameters that other processes own: RuntimeError in this build."""
