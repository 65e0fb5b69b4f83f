"""Tensors moved among CUDA devices: they need devices that this build does not have."""

from __future__ import annotations

import facula

__all__ = [
    "broadcast",
    "broadcast_coalesced",
    "gather",
    "reduce_add",
    "reduce_add_coalesced",
    "scatter",
]


def _need_devices(name):
    if not facula.cuda.is_available():
        raise RuntimeError(f"{name}(): needs CUDA devices; this build has none")
    raise NotImplementedError(f"{name}(): moving tensors among devices is not offered yet")


def broadcast(tensor, devices=None, *, out=None):
    """Copies of a tensor on devices; RuntimeError without any."""
    if (devices is None) == (out is None):
        raise RuntimeError(f"broadcast(): expected one of devices and out; got {devices} and {out}")
    _need_devices("broadcast")


def broadcast_coalesced(tensors, devices, buffer_size=10485760):
    """Copies of tensors on devices; RuntimeError without any."""
    _need_devices("broadcast_coalesced")


def reduce_add(inputs, destination=None):
    """The sum of tensors of several devices; AssertionError for tensors of the CPU."""
    inputs = list(inputs)
    if not inputs:
        raise RuntimeError("reduce_add expects at least one tensor to add")
    for i, tensor in enumerate(inputs):
        if tensor.device.type == "cpu":
            raise AssertionError(
                f"reduce_add expects all inputs to be on GPUs, but input {i} is on CPU"
            )
    _need_devices("reduce_add")


def reduce_add_coalesced(inputs, destination=None, buffer_size=10485760):
    """The sums of lists of tensors of several devices; AssertionError for tensors of the CPU."""
    return tuple(reduce_add(tensors, destination) for tensors in zip(*inputs, strict=True))


def scatter(tensor, devices=None, chunk_sizes=None, dim=0, streams=None, *, out=None):
    """Parts of a tensor on devices; RuntimeError without any."""
    _need_devices("scatter")


def gather(tensors, dim=0, destination=None, *, out=None):
    """Tensors of several devices as one; RuntimeError for tensors of the CPU."""
    for i, tensor in enumerate(tensors):
        if tensor.device.type == "cpu":
            raise RuntimeError(
                f"Expected all input tensors to be CUDA tensors, but tensor at index {i} has "
                "device cpu"
            )
    _need_devices("gather")
