"""A linear layer that trains for dynamic quantization."""

from __future__ import annotations

from facula.ao.nn.qat.modules.linear import Linear as _Linear

__all__ = ["Linear"]


class Linear(_Linear):
    """A linear layer with a rounded weight, whose inputs will be quantized by their own range.

    Args:
        in_features, out_features, bias: as nn.Linear's. qconfig (QConfig): its activations are
            seen by an observer that keeps nothing.

    Raises:
        ValueError: a configuration for static quantization.
    """

    def __init__(self, in_features, out_features, bias=True, qconfig=None, device=None, dtype=None):
        super().__init__(in_features, out_features, bias, qconfig, device, dtype)
        from facula.ao.quantization.utils import activation_is_memoryless

        if not activation_is_memoryless(qconfig):
            raise ValueError(
                "Dynamic QAT requires a memoryless observer."
                "This means a MovingAverage observer with averaging constant equal to 1"
            )
