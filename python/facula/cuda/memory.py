"""Memory of CUDA devices: nothing is allocated where there are none."""

from __future__ import annotations

from collections import OrderedDict

import facula


def _asked(name, device, otherwise):
    """What `facula.accelerator` says of a CUDA device; `otherwise` without one."""
    if not facula.cuda.is_available():
        return otherwise
    return getattr(facula.accelerator, name)(device)


def empty_cache():
    """Give cached device memory back; there is none without a CUDA device."""
    if facula.cuda.is_available():
        facula.accelerator.empty_cache()


def memory_allocated(device=None):
    """Bytes in tensors of a CUDA device; 0 without one."""
    return _asked("memory_allocated", device, 0)


def max_memory_allocated(device=None):
    """The most bytes in tensors of a CUDA device so far; 0 without one."""
    return _asked("max_memory_allocated", device, 0)


def memory_reserved(device=None):
    """Bytes that the allocator holds on a CUDA device; 0 without one."""
    return _asked("memory_reserved", device, 0)


def max_memory_reserved(device=None):
    """The most bytes that the allocator held on a CUDA device; 0 without one."""
    return _asked("max_memory_reserved", device, 0)


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def memory_stats(device=None):
    """The allocator's counts of a CUDA device, as an OrderedDict; empty without one."""
    return _asked("memory_stats", device, OrderedDict())


def memory_stats_as_nested_dict(device=None):
    """The allocator's counts by their parts, as nested dicts; empty without a CUDA device."""
    nested = {}
    for name, value in memory_stats(device).items():
        place = nested
        *outer, last = name.split(".")
        for part in outer:
            place = place.setdefault(part, {})
        place[last] = value
    return nested


def host_memory_stats():
    """The counts of pinned host memory: empty without CUDA."""
    return OrderedDict()


def memory_snapshot(mempool_id=None, include_traces=True):
    """The allocator's blocks: none without a CUDA device."""
    return []


def memory_summary(device=None, abbreviated=False):
    """The allocator's counts as text, one a line."""
    rows = memory_stats(device).items()
    return "\n".join(f"{name}: {value}" for name, value in rows) or "no CUDA device"


def mem_get_info(device=None):
    """(free, total) bytes of a CUDA device; AssertionError without one."""
    facula.cuda.init()
    return facula.accelerator.get_memory_info(device)


def reset_peak_memory_stats(device=None):
    """Start counting peaks anew; nothing to do without a CUDA device."""
    return _asked("reset_peak_memory_stats", device, None)


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def reset_peak_host_memory_stats():
    """Start counting peaks of page-locked memory anew; nothing to do without a CUDA device."""


def reset_accumulated_host_memory_stats():
    """Start adding up page-locked memory anew; nothing to do without a CUDA device."""


def reset_accumulated_memory_stats(device=None):
    """Start adding up anew; nothing to do without a CUDA device."""
    return _asked("reset_accumulated_memory_stats", device, None)


def get_allocator_backend():
    """The name of the allocator: "native"."""
    return "native"


def list_gpu_processes(device=None):
    """The processes that use a device; a text that says why not, without NVIDIA's library."""
    return "pynvml module not found, please install nvidia-ml-py"


def _needs_device(name):
    def function(*args, **kwargs):
        facula.cuda.init()
        raise NotImplementedError(f"cuda.{name}(): not offered by facula's allocator")

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = "Needs a CUDA device: AssertionError without one."
    return function


caching_allocator_alloc = _needs_device("caching_allocator_alloc")
caching_allocator_delete = _needs_device("caching_allocator_delete")
caching_allocator_enable = _needs_device("caching_allocator_enable")
change_current_allocator = _needs_device("change_current_allocator")
get_per_process_memory_fraction = _needs_device("get_per_process_memory_fraction")
set_per_process_memory_fraction = _needs_device("set_per_process_memory_fraction")
use_mem_pool = _needs_device("use_mem_pool")


class MemPool:
    """A pool of device memory: AssertionError without a CUDA device."""

    def __init__(self, *args, **kwargs):
        facula.cuda.init()
        raise NotImplementedError("cuda.MemPool: not offered by facula's allocator")


class CUDAPluggableAllocator(MemPool):
    """An allocator from a library: AssertionError without a CUDA device."""
