"""The switch of NVIDIA's profilers: nothing to start where there is no CUDA."""

from __future__ import annotations

from contextlib import contextmanager

import facula

__all__ = ["profile", "start", "stop"]


def start():
    """Let the profiler collect; AssertionError without a CUDA device."""
    facula.cuda.init()


def stop():
    """Let the profiler rest; AssertionError without a CUDA device."""
    facula.cuda.init()


@contextmanager
def profile():
    """Context manager: the profiler collects within."""
    start()
    try:
        yield
    finally:
        stop()
