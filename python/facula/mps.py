"""Apple's devices: this build has none, and says so."""

from __future__ import annotations

from contextlib import contextmanager

from facula import _absent_device

__all__ = (
    "compile_shader current_allocated_memory device_count driver_allocated_memory empty_cache "
    "get_rng_state is_available load_metallib manual_seed recommended_max_memory seed "
    "set_per_process_memory_fraction set_rng_state synchronize Event Stream "
    "current_stream default_stream set_stream stream"
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

    def record(self):
        """Mark the work so far."""

    def wait(self):
        """Have later work wait."""

    def query(self):
        """Whether the work before it is done."""

    def synchronize(self):
        """Wait for the work before it."""

    def elapsed_time(self, end_event):
        """Milliseconds until another event."""


class Stream:
    """A queue of work: RuntimeError, as there is no device."""

    stream_id = property(lambda self: 0, doc="Its number.")

    def __init__(self, *args, **kwargs):
        raise RuntimeError("mps.Stream: expected an MPS device; this build has none")

    def synchronize(self):
        """Wait for its work."""


def current_stream():
    """The current stream: RuntimeError, as there is no device."""
    return Stream()


def default_stream():
    """The default stream: RuntimeError, as there is no device."""
    return Stream()


def set_stream(stream):
    """Make a stream the current one: RuntimeError, as there is no device."""
    Stream()


@contextmanager
def stream(stream):
    """Work goes to a stream within; None leaves things as they are."""
    if stream is not None:
        set_stream(stream)
    yield


_absent_device.install(
    globals(), " ".join(name for name in __all__ if name not in globals()), _error
)
