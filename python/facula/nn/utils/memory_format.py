"""The memory format of convolution weights."""

from __future__ import annotations

import facula


def _convert(module, memory_format, classes):
    for child in module.modules():
        if isinstance(child, classes):
            child.weight.data = child.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module, memory_format):
    """Store the weights of all 2-D convolutions of `module` in a memory format.

    Args:
        module: Module, which is changed.
        memory_format: facula.channels_last or another.

    Returns:
        `module`.
    """
    return _convert(module, memory_format, (facula.nn.Conv2d, facula.nn.ConvTranspose2d))


def convert_conv3d_weight_memory_format(module, memory_format):
    """Store the weights of all 3-D convolutions of `module` in a memory format.

    Args:
        module: Module, which is changed.
        memory_format: facula.channels_last_3d or another.

    Returns:
        `module`.
    """
    return _convert(module, memory_format, (facula.nn.Conv3d, facula.nn.ConvTranspose3d))
