"""Apple's devices: this build has none, and says so."""

from __future__ import annotations

from facula import _absent_device

__all__ = (
    "compile_shader current_allocated_memory device_count driver_allocated_memory empty_cache "
    "get_rng_state is_available load_metallib manual_seed recommended_max_memory seed "
    "set_per_process_memory_fraction set_rng_state synchronize Event"
).split()

_TITLES = {"synchronize": "deviceSynchronize", "get_rng_state": "getDefaultGenerator"}


def _error(name):
    head, *rest = name.split("_")
    title = _TITLES.get(name, head + "".join(part.title() for part in rest))
    return RuntimeError(f"Cannot execute {title}() without MPS backend.")


class Event:
    """A mark in a device's work: RuntimeError, as there is no device."""

    def __init__(self, enable_timing=False):
        raise RuntimeError("Cannot execute acquireEvent() without MPS backend.")


_absent_device.install(globals(), " ".join(name for name in __all__ if name != "Event"), _error)
