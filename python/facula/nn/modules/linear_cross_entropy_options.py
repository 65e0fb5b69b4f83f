"""How the cross entropy of a linear map goes by blocks."""

from __future__ import annotations

import dataclasses

import facula

_METHODS = ("auto", "aspect_ratio", None)
_POLICIES = ("auto", "accurate", "compact")


@dataclasses.dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """Asks `nn.functional.linear_cross_entropy` to go by blocks of samples and classes.

    The matrix of logits is then held a block at a time, forward and backward: of memory, no more
    than the gradients themselves are needed. Logits are computed again on the way back.

    Args:
        allow_retain_graph: for PyTorch's sake; going back twice is always allowed.
        batch_chunk_size: samples of a block; None: 512, less where there are fewer.
        chunking_method: "auto", "aspect_ratio" or None; all leave the choice to the operator.
        acc_policy: "auto", "accurate" or "compact"; sums of half types are always in float32.
        acc_dtype: a wider dtype for sums and accumulated gradients, or None.

    Raises:
        ValueError: a setting that is none of these.

    Example:
        >>> facula.nn.LinearCrossEntropyOptions(batch_chunk_size=64).batch_chunk_size
        64
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: facula.dtype | None = None

    def __post_init__(self):
        """Check the settings."""
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be a positive int or None; got {size!r}")
        if self.chunking_method not in _METHODS:
            raise ValueError(f"chunking_method must be in {_METHODS}; got {self.chunking_method!r}")
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"acc_policy must be in {_POLICIES}; got {self.acc_policy!r}")
        dtype = self.acc_dtype
        if dtype is not None and not (isinstance(dtype, facula.dtype) and dtype.is_floating_point):
            raise ValueError(f"acc_dtype must be a floating dtype or None; got {dtype!r}")
