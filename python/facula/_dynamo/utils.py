"""Questions that programs ask of a compiler."""

from __future__ import annotations


def is_compile_supported(device_type):
    """Whether functions are compiled for a kind of device: False, as there is no compiler yet."""
    return False
