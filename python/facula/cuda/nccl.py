"""NVIDIA's library of collectives, which this build does not have."""

from __future__ import annotations

import facula


def is_available(tensors):
    """Whether the collectives work on these tensors: False, as none is on a CUDA device."""
    return False


def version():
    """The library's version; AssertionError without a CUDA device."""
    facula.cuda.init()
    raise NotImplementedError("cuda.nccl.version(): this build has no NCCL")
