"""The memory that tensors on the CPU take."""

from __future__ import annotations

import os

import facula
from facula import _C

__all__ = ["track_allocations", "memory_stats", "empty_cache", "reset_peak_memory_stats"]


class track_allocations:
    """Context manager: errors for want of memory name the lines that took the largest blocks.

    Blocks of 64 KiB and less are not kept track of. Large operators hold the GIL meanwhile.

    Example:
        >>> with facula.utils.memory.track_allocations():
        ...     weights = facula.empty(2**30)
    """

    def __enter__(self):
        self._was_on = _C._track_allocations(os.path.dirname(facula.__file__))
        return self

    def __exit__(self, *exception):
        if not self._was_on:
            _C._track_allocations(None)


def memory_stats():
    """Bytes and counts of the CPU's allocator; returns a dict.

    Keys: allocated, peak_allocated, reserved, peak_reserved, cached (bytes), allocations, frees,
    system_allocations (counts).
    """
    return _C._memory_stats()


def empty_cache():
    """Give memory that waits for reuse back to the system."""
    _C._empty_cache()


def reset_peak_memory_stats():
    """Count peaks from now on."""
    _C._reset_peak_memory_stats()
