"""How devices are given to functions of `facula.cuda`."""

from __future__ import annotations

import facula


def _get_device_index(device, optional=False, allow_cpu=False):
    """The index that a device, text or number stands for.

    Args:
        device (device | str | int | None): a CUDA device; None and "cuda" are the current one.
        optional (bool): whether None may be given.
        allow_cpu (bool): whether "cpu" may be given; it is -1.

    Raises:
        ValueError: another kind of device, or None where it may not be.
    """
    if isinstance(device, int):
        return device
    if device is None:
        if not optional:
            raise ValueError(f"Expected a facula.device with a specified index, but got: {device}")
        return facula.cuda.current_device() if facula.cuda.is_available() else None
    device = facula.device(device)
    if allow_cpu and device.type == "cpu":
        return -1
    if device.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {device}")
    return facula.cuda.current_device() if device.index is None else device.index
