"""Linear layers whose quantized weights have zero blocks."""

from . import dynamic  # noqa: F401
from .linear import Linear, LinearPackedParams

__all__ = ["dynamic", "Linear", "LinearPackedParams"]
