"""Meta's devices: this build has none, and says so."""

from __future__ import annotations

from facula import _absent_device

__all__ = (
    "current_device current_stream default_stream device_count empty_cache get_device_capability "
    "get_device_properties get_rng_state get_rng_state_all init initial_seed is_available "
    "is_initialized manual_seed manual_seed_all max_memory_allocated memory_allocated memory_stats "
    "record_memory_history reset_peak_memory_stats seed seed_all set_device set_rng_state "
    "set_stream snapshot stream synchronize"
).split()


def _error(name):
    head, *rest = name.split("_")
    title = head + "".join(part.title() for part in rest)
    return RuntimeError(f"Cannot execute {title}() without MTIA backend.")


def memory_stats(device=None):
    """The figures of the allocator: none."""
    return {}


def reset_peak_memory_stats(device=None):
    """Nothing: there are no figures."""


_absent_device.install(
    globals(),
    "current_device current_stream default_stream empty_cache get_device_capability "
    "get_device_properties get_rng_state init initial_seed record_memory_history set_device "
    "set_rng_state set_stream snapshot stream synchronize",
    _error,
)

device = _absent_device.device_guard
