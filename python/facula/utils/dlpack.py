"""Memory shared with other libraries by DLPack."""

from __future__ import annotations

import enum

import facula
from facula.functional import from_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(enum.IntEnum):
    """The kinds of devices, by DLPack's numbers."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def to_dlpack(tensor):
    """A DLPack capsule over a tensor's memory, for libraries that take capsules.

    Args:
        tensor (Tensor): any shape; any dtype that DLPack has.

    Returns:
        capsule: to be consumed once.

    Raises:
        TypeError: not a tensor.
        RuntimeError: the tensor requires grad, or is on a device that cannot share.

    Example:
        >>> facula.utils.dlpack.from_dlpack(facula.utils.dlpack.to_dlpack(facula.ones(2)))
        tensor([1., 1.])
    """
    if not isinstance(tensor, facula.Tensor):
        raise TypeError(f"to_dlpack(): expected a Tensor; got {type(tensor).__name__}")
    return tensor.__dlpack__()
