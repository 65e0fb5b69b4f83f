"""Optimizers that share their work among processes."""

from __future__ import annotations

from facula.distributed.distributed_c10d import _unavailable
from facula.distributed.optim.post_localSGD_optimizer import PostLocalSGDOptimizer
from facula.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer
from facula.optim import Optimizer

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]


class _AbsentOptimizer(Optimizer):
    def __init__(self, *args, **kwargs):
        raise _unavailable(f"{type(self).__name__}()")


class DistributedOptimizer(_AbsentOptimizer):
    """An optimizer of parameters that other processes own: RuntimeError in this build."""
