"""Questions that programs ask of a compiler."""

from __future__ import annotations


def is_compile_supported(device_type):
    """Whether functions are compiled for a kind of device: for the CPU.

    Example:
        >>> from facula._dynamo.utils import is_compile_supported
        >>> is_compile_supported("cpu")
        True
    """
    return str(device_type).partition(":")[0] == "cpu"
