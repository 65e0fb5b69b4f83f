"""Lists of tensors, sorted by where they are and what they hold."""

from __future__ import annotations

import facula


def _get_foreach_kernels_supported_devices():
    """Kinds of accelerators whose operators over lists are faster than loops."""
    name = facula._C._accelerator_name()
    return ["cuda", "xpu", "mtia", "privateuseone" if name in (None, "cuda") else name]


def _get_fused_kernels_supported_devices():
    """Kinds of devices that optimizers have one operator for."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def _device_has_foreach_support(device):
    """Whether operators over lists run on a device: everywhere, also where loops are as fast."""
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors, device):
    """Whether operators over lists take these: no subclasses, on a device that has them."""
    plain = all(t is None or type(t) is facula.Tensor for t in tensors)
    return plain and _device_has_foreach_support(device)


def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices=False):
    """Split lists of equal length by the device and dtype of the first list's tensors.

    Args:
        tensorlistlist (list of lists of tensors or None): tensors at one place stay together; the
            first list has no None.
        with_indices (bool): whether the places they had are given, too.

    Returns:
        dict: (device, dtype) -> (lists, indices), with no indices unless they are asked for.

    Example:
        >>> a, b = facula.ones(1), facula.ones(1, dtype=facula.float64)
        >>> groups = _group_tensors_by_device_and_dtype([[a, b, a]], with_indices=True)
        >>> [indices for _, indices in groups.values()]
        [[0, 2], [1]]
    """
    groups = {}
    for index, row in enumerate(zip(*tensorlistlist, strict=True)):
        key = row[0].device, row[0].dtype
        if key not in groups:
            groups[key] = [[] for _ in tensorlistlist], []
        lists, indices = groups[key]
        for one, tensor in zip(lists, row, strict=True):
            one.append(tensor)
        if with_indices:
            indices.append(index)
    return groups
