"""The CPU as a device type: what programs that serve any device ask for."""

from __future__ import annotations


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


def get_capabilities():
    """What the processor can do: a read-only dict of instruction sets, cores and caches.

    Example:
        >>> facula.cpu.get_capabilities()["num_logical_cores"] > 0
        True
    """
    from facula.cpu._capabilities import capabilities

    return capabilities()


def synchronize(device=None):
    """Nothing: work on the CPU is done when a call returns."""


class Stream:
    """Stands for a queue of work; on the CPU, work is done when a call returns.

    Args:
        priority (int): accepted.
    """

    def __init__(self, priority=-1):
        pass

    def wait_stream(self, stream):
        """Nothing: the other stream's work is done."""

    def record_event(self):
        """Nothing: there is no work to mark."""

    def wait_event(self, event):
        """Nothing: the event has happened."""


class Event:
    """Stands for a mark in a stream: it has always happened."""

    def query(self):
        """Whether the work before it is done: True."""
        return True

    def record(self, stream=None):
        """Nothing: there is no work to mark."""

    def synchronize(self):
        """Nothing: the work before it is done."""

    def wait(self, stream=None):
        """Nothing: the work before it is done."""


_default_stream = Stream()
_current_stream = _default_stream


def current_stream(device=None):
    """The stream that a StreamContext chose; else the default one."""
    return _current_stream


class StreamContext:
    """Context manager: current_stream() gives a stream within; None leaves things as they are.

    Args:
        stream (Stream): the stream.
    """

    def __init__(self, stream):
        self.stream = stream
        self.prev_stream = _default_stream

    def __enter__(self):
        global _current_stream
        if self.stream is not None:
            self.prev_stream, _current_stream = _current_stream, self.stream

    def __exit__(self, *exception):
        global _current_stream
        if self.stream is not None:
            _current_stream = self.prev_stream


def stream(stream):
    """A StreamContext."""
    return StreamContext(stream)


def __getattr__(name):
    from facula import _missing

    return _missing.submodule(__name__, name)
