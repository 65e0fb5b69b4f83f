"""NVIDIA's library of collectives: `facula.distributed` has the calls, over the backend "nccl"."""

from __future__ import annotations

import facula
from facula.distributed import _nccl

__all__ = ["is_available", "version"]


def is_available(tensors):
    """Whether the collectives of this module work on tensors.

    Args:
        tensors (list of Tensor): contiguous and dense, each on a CUDA device of its own.

    Returns:
        bool: False without NCCL's library.
    """
    devices = {t.device for t in tensors}
    fit = all(t.device.type == "cuda" and not t.is_sparse and t.is_contiguous() for t in tensors)
    return fit and len(devices) == len(tensors) and _nccl.is_available()


def version():
    """The version of NCCL's library.

    Returns:
        tuple: (major, minor, patch)

    Raises:
        RuntimeError: it is not there.
    """
    return _nccl.version()


def __getattr__(name):
    if name in ("all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter"):
        raise NotImplementedError(
            f"cuda.nccl.{name}(): one process has one device of a group; "
            f"facula.distributed has the collectives"
        )
    raise facula._missing.attribute(__name__, name)
