"""Copies for devices, and back: they need devices that this build does not have."""

from __future__ import annotations

import facula
from facula.utils._pytree import tree_leaves, tree_map


def _no_device(what, device):
    if facula.device(device).type == "cpu":
        return AssertionError(f"{what} function not implemented for CPU tensors")
    return RuntimeError(f"{what}: there is no device {device} in this build")


def scatter(inputs, target_gpus, dim=0):
    """A batch in parts, one for each device; AssertionError or RuntimeError without devices."""
    raise _no_device("Scatter", _as_device(target_gpus[0]))


def scatter_kwargs(inputs, kwargs, target_gpus, dim=0):
    """Arguments in parts, one for each device, as (tuple of tuples, tuple of dicts)."""
    if not target_gpus:
        raise RuntimeError("scatter_kwargs(): expected devices; got none")
    raise _no_device("Scatter", _as_device(target_gpus[0]))


def gather(outputs, target_device, dim=0):
    """Parts of a batch as one on a device; AssertionError for parts on the CPU."""
    if any(isinstance(x, facula.Tensor) for x in tree_leaves(outputs)):
        raise _no_device("Gather", "cpu")
    return tree_map(lambda *parts: parts, *outputs)


def replicate(network, devices, detach=False):
    """Copies of a module, one for each device; AssertionError for a module on the CPU."""
    if any(True for _ in network.parameters()) or any(True for _ in network.buffers()):
        raise _no_device("Broadcast", "cpu")
    import copy

    return [copy.copy(network) for _ in devices]


def _as_device(device):
    return f"cuda:{device}" if isinstance(device, int) else device
