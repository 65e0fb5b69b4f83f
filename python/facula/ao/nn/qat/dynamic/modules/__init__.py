"""The classes that train for dynamic quantization."""

from .linear import Linear

__all__ = ["Linear"]
