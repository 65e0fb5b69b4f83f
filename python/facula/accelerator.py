"""The accelerator of this process, whatever its kind: devices, streams and memory.

The accelerator is CUDA where it is there, else the first kind of device that a library registered.
Indices count the devices of that kind. Nothing is started before it is used.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import cache

import facula
from facula import _C

__all__ = [
    "Graph",
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "empty_host_cache",
    "get_device_capability",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]


def _kind():
    """The name of the accelerator's kind; RuntimeError where there is none."""
    name = _C._accelerator_name()
    if name is None:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return name


def _device(device):
    """A device of the accelerator with an index; ValueError for one of another kind."""
    kind = _kind()
    if device is None:
        return facula.device(kind, _C._current_device_index(kind))
    device = facula.device(device)
    if device.type != kind:
        raise ValueError(f"{device.type} doesn't match the current accelerator {kind}.")
    if device.index is None:
        return facula.device(kind, _C._current_device_index(kind))
    return device


def current_accelerator(check_available=False):
    """The kind of this process's accelerator.

    Args:
        check_available (bool): give one that has a device only.

    Returns:
        device | None: without an index; None where there is no accelerator.
    """
    name = _C._accelerator_name()
    if name is None or (check_available and not _C._device_count(name)):
        return None
    return facula.device(name)


def is_available():
    """Whether there is an accelerator with a device."""
    return device_count() > 0


def device_count():
    """The number of the accelerator's devices; 0 where there is none."""
    name = _C._accelerator_name()
    return 0 if name is None else _C._device_count(name)


def current_device_index():
    """The index of this thread's current device."""
    return _C._current_device_index(_kind())


current_device_idx = current_device_index


def set_device_index(device, /):
    """Make a device the current one.

    Args:
        device (device | str | int): an index below zero changes nothing.
    """
    if isinstance(device, int) and device < 0:
        return
    _C._set_current_device(_device(device))


set_device_idx = set_device_index


class device_index:
    """Context manager: a device is the current one within.

    Args:
        device (int | None): its index; None or one below zero changes nothing.
    """

    def __init__(self, device, /):
        self.idx = device
        self.prev_idx = -1

    def __enter__(self):
        if self.idx is not None and self.idx >= 0:
            self.prev_idx = current_device_index()
            set_device_index(self.idx)

    def __exit__(self, *exception):
        set_device_index(self.prev_idx)
        return False


def current_stream(device=None, /):
    """The stream that is given this thread's work for a device (the current one if None)."""
    return _C._current_stream(_device(device))


def set_stream(stream):
    """Make a stream the current one on its device, and that device the current one."""
    _C._set_current_stream(stream)


def synchronize(device=None, /):
    """Wait for all streams of a device (the current one if None).

    Raises:
        facula.AcceleratorError: work that ran late has failed.
    """
    _C._synchronize_device(_device(device))


@cache
def get_device_capability(device=None, /):
    """What a device can do: `supported_dtypes` (set of dtypes)."""
    device = _device(device)
    named = {value for value in vars(_C).values() if isinstance(value, facula.dtype)}

    def holds(dtype):
        try:
            facula.empty(1, dtype=dtype, device=device)
        except (RuntimeError, TypeError):
            return False
        return True

    return {"supported_dtypes": {dtype for dtype in named if holds(dtype)}}


# --- memory


def empty_cache():
    """Give memory that is kept for reuse back to the devices."""
    name = _C._accelerator_name()
    if name is not None:
        _C._empty_device_cache(name)


def empty_host_cache():
    """Give page-locked host memory that is kept for reuse back to the system."""
    if _C._accelerator_name() is not None:
        _C._empty_pinned_cache()


def get_memory_info(device_index=None, /):
    """Free and total bytes of a device (tuple of int), as its library says."""
    return _C._device_memory_info(_device(device_index))


def memory_stats(device_index=None, /):
    """The figures of a device's allocator.

    Returns:
        OrderedDict: `allocated_bytes.all.current` and its like: a quantity, `all`, `large_pool` or
        `small_pool`, and `current`, `peak`, `allocated` or `freed`. Empty before the first use.
    """
    name = _C._accelerator_name()
    if name is None or not _C._is_device_started(name):
        return OrderedDict()
    return OrderedDict(sorted(_C._device_memory_stats(_device(device_index)).items()))


def _figure(name, device):
    return memory_stats(device).get(name, 0)


def memory_allocated(device_index=None, /):
    """Bytes that tensors have on a device."""
    return _figure("allocated_bytes.all.current", device_index)


def max_memory_allocated(device_index=None, /):
    """The most bytes that tensors had on a device since the peaks were reset."""
    return _figure("allocated_bytes.all.peak", device_index)


def memory_reserved(device_index=None, /):
    """Bytes that are held from a device, in use or kept for reuse."""
    return _figure("reserved_bytes.all.current", device_index)


def max_memory_reserved(device_index=None, /):
    """The most bytes that were held from a device since the peaks were reset."""
    return _figure("reserved_bytes.all.peak", device_index)


def reset_accumulated_memory_stats(device_index=None, /):
    """Set `allocated` and `freed` of the figures, and counts of events, to zero."""
    if _C._accelerator_name() is not None:
        _C._reset_device_totals(_device(device_index))


def reset_peak_memory_stats(device_index=None, /):
    """Let the peaks begin at what is in use now."""
    if _C._accelerator_name() is not None:
        _C._reset_device_peaks(_device(device_index))


class Graph(_C._DeviceGraph):
    """Work that was given to a stream while it was captured, to be run again.

    Args:
        keep_graph (bool), pool, capture_error_mode (str): as PyTorch's; a pool of memory that
            graphs share is not implemented.

    Raises:
        NotImplementedError: the device cannot capture, or a pool is given.
    """

    def __init__(self, keep_graph=False, *, pool=None, capture_error_mode="default"):
        if pool is not None:
            raise NotImplementedError("Graph: memory pools that graphs share are not implemented")
        self._stream = None

    def __new__(cls, *args, **kwargs):
        return super().__new__(cls)

    def __enter__(self):
        synchronize()
        self._stream = facula.Stream()
        self._stream.__enter__()
        self.capture_begin()
        return self

    def __exit__(self, *exception):
        try:
            self.capture_end()
        finally:
            self._stream.__exit__(*exception)
        return False
