"""The CPU as a device type: what programs that serve any device ask for."""

from __future__ import annotations

from contextlib import nullcontext


def is_available():
    """Whether the CPU can be used: True."""
    return True


def is_initialized():
    """Whether the CPU was started: True."""
    return True


def device_count():
    """The number of CPU devices: 1."""
    return 1


def current_device():
    """The current CPU device: "cpu"."""
    return "cpu"


def set_device(device):
    """Nothing: there is one CPU."""


def synchronize(device=None):
    """Nothing: work on the CPU is done when a call returns."""


def current_stream(device=None):
    """None: the CPU has no streams."""


def stream(stream):
    """A context manager that does nothing."""
    return nullcontext()


def __getattr__(name):
    from facula import _missing

    return _missing.submodule(__name__, name)
