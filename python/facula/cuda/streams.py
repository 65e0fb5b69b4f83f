"""Streams and events of CUDA devices: classes to test for, which need a device to be made."""

from __future__ import annotations

import facula

__all__ = ["Event", "ExternalStream", "Stream"]


class Stream(facula.Stream):
    """A queue of work on a CUDA device; AssertionError without one."""

    def __new__(cls, device=None, priority=0, **kwargs):
        facula.cuda.init()
        return super().__new__(cls, device=device or "cuda", priority=priority)

    @staticmethod
    def priority_range():
        """The least and the greatest priority; AssertionError without a CUDA device."""
        facula.cuda.init()
        return 0, -1

    @property
    def cuda_stream(self):
        """The stream's handle, as an int."""
        return self.native_handle


class ExternalStream(Stream):
    """A stream that another library made; AssertionError without a CUDA device."""

    def __new__(cls, stream_ptr, device=None, **kwargs):
        facula.cuda.init()
        raise NotImplementedError("cuda.ExternalStream: streams of others cannot be used yet")


class Event(facula.Event):
    """A mark in a stream; AssertionError without a CUDA device."""

    def __new__(cls, enable_timing=False, blocking=False, interprocess=False, external=False):
        facula.cuda.init()
        return super().__new__(cls, device="cuda", enable_timing=enable_timing, blocking=blocking)

    @classmethod
    def from_ipc_handle(cls, device, handle):
        """The event of another process; RuntimeError for a handle that is none."""
        if len(handle) != 64:
            raise RuntimeError(
                f"from_ipc_handle(): expected a handle of 64 bytes; got {len(handle)}"
            )
        facula.cuda.init()
        raise NotImplementedError("cuda.Event.from_ipc_handle(): not offered yet")

    def ipc_handle(self):
        """A name of the event for other processes."""
        raise NotImplementedError("cuda.Event.ipc_handle(): not offered yet")

    @property
    def cuda_event(self):
        """The event's handle, as an int."""
        return self.event_id


class StreamContext:
    """Context manager: work goes to a stream; nothing happens for None or without devices."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is not None and facula.cuda.is_available():
            self.stream.__enter__()

    def __exit__(self, *exception):
        if self.stream is not None and facula.cuda.is_available():
            self.stream.__exit__(*exception)


def stream(stream):
    """Context manager: work goes to `stream` within; None leaves things as they are."""
    return StreamContext(stream)


def current_stream(device=None):
    """The current stream of a CUDA device; AssertionError without one."""
    facula.cuda.init()
    return facula.accelerator.current_stream(device)


def default_stream(device=None):
    """The default stream of a CUDA device; AssertionError without one."""
    return current_stream(device)


def set_stream(stream):
    """Make a stream the current one; None does nothing."""
    if stream is not None:
        facula.cuda.init()
        facula.accelerator.set_stream(stream)


def get_stream_from_external(data_ptr, device=None):
    """The stream at an address; AssertionError without a CUDA device."""
    return ExternalStream(data_ptr, device)
