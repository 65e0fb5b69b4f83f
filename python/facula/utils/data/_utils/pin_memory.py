"""Batches in pinned memory."""

from __future__ import annotations

import facula


def can_pin():
    """Whether there is an accelerator to pin memory for; warns where there is none."""
    if facula.cuda.is_available():
        return True
    import warnings

    warnings.warn("DataLoader: pin_memory does nothing without an accelerator", stacklevel=5)
    return False


def pin_memory(data, device=None):
    """`data` with its tensors in pinned memory."""
    pin = getattr(data, "pin_memory", None)
    if pin is not None:
        return pin()
    if isinstance(data, dict):
        return {k: pin_memory(v) for k, v in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(v) for v in data))
    if isinstance(data, (tuple, list)):
        return [pin_memory(v) for v in data]
    return data
