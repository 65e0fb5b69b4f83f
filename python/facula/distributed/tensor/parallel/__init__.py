"""Tensor parallelism: modules whose parameters are cut, by a plan of names and styles."""

from __future__ import annotations

from facula.distributed.tensor.parallel.api import parallelize_module
from facula.distributed.tensor.parallel.loss import loss_parallel
from facula.distributed.tensor.parallel.style import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
)

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
    "parallelize_module",
    "loss_parallel",
]
