"""Optimizers that share their work among processes."""

from __future__ import annotations

from facula.distributed.optim.post_localSGD_optimizer import PostLocalSGDOptimizer
from facula.distributed.optim.utils import as_functional_optim
from facula.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = [
    "DistributedOptimizer",
    "PostLocalSGDOptimizer",
    "ZeroRedundancyOptimizer",
    "as_functional_optim",
]


def __getattr__(name):
    # rpc is loaded by those who use it.
    if name == "DistributedOptimizer":
        from facula.distributed.optim.optimizer import DistributedOptimizer

        return DistributedOptimizer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
