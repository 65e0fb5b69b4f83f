"""The fused classes with quantized weights."""

from .linear_relu import LinearReLU

__all__ = ["LinearReLU"]
