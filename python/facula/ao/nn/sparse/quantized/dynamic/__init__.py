"""Linear layers of floats whose quantized weights have zero blocks."""

from .linear import Linear

__all__ = ["Linear"]
