"""Intel's devices: this build has none, and says so."""

from __future__ import annotations

from collections import OrderedDict

from facula import _absent_device
from facula._absent_device import no_change

__all__ = (
    "Event Stream can_device_access_peer current_device current_stream device_count empty_cache "
    "get_arch_list get_device_capability get_device_name get_device_properties get_gencode_flags "
    "get_rng_state get_rng_state_all init initial_seed is_available is_bf16_supported "
    "is_current_stream_capturing is_initialized is_tf32_supported manual_seed manual_seed_all "
    "max_memory_allocated max_memory_reserved mem_get_info memory_allocated memory_reserved "
    "memory_stats reset_accumulated_memory_stats reset_peak_memory_stats seed seed_all set_device "
    "set_rng_state set_stream stream synchronize"
).split()


def _error(name):
    return AssertionError("Torch not compiled with XPU enabled")


class Stream:
    """A queue of a device's work: RuntimeError, as there is no device."""

    def __init__(self, *args, **kwargs):
        raise RuntimeError(f"Tried to instantiate dummy base class {type(self).__name__}")


class Event(Stream):
    """A mark in a device's work: RuntimeError, as there is no device."""


def stream(stream):
    """Context manager: a stream is the current one within; with None, nothing changes."""
    return no_change()


def memory_stats(device=None):
    """The figures of the allocator: none."""
    return OrderedDict()


def empty_cache():
    """Nothing: no memory is kept."""


def get_gencode_flags():
    """What the build was compiled for: nothing."""
    return ""


_absent_device.install(
    globals(),
    "can_device_access_peer current_device current_stream get_device_capability get_device_name "
    "get_device_properties get_rng_state init initial_seed mem_get_info "
    "reset_accumulated_memory_stats reset_peak_memory_stats set_device set_rng_state set_stream "
    "synchronize",
    _error,
)

device = _absent_device.device_guard
