"""Modules on several devices: one device is what this build has, so modules run as they are."""

from __future__ import annotations

from facula.nn.parallel import comm  # noqa: F401
from facula.nn.parallel.data_parallel import DataParallel, data_parallel
from facula.nn.parallel.distributed import DistributedDataParallel
from facula.nn.parallel.parallel_apply import parallel_apply
from facula.nn.parallel.scatter_gather import gather, replicate, scatter

__all__ = [
    "replicate",
    "scatter",
    "parallel_apply",
    "gather",
    "data_parallel",
    "DataParallel",
    "DistributedDataParallel",
]
