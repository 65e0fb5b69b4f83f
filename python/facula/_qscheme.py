"""Quantization schemes: how integers stand for values, for a tensor as a whole or by channels."""

from __future__ import annotations

import facula

__all__ = [
    "per_channel_affine",
    "per_channel_affine_float_qparams",
    "per_channel_symmetric",
    "per_tensor_affine",
    "per_tensor_symmetric",
    "qscheme",
]


class qscheme:
    """The type of `facula.per_tensor_affine` and its like.

    Example:
        >>> facula.per_tensor_affine
        torch.per_tensor_affine
    """

    __slots__ = ("_name",)

    def __init__(self, name):
        self._name = name

    @property
    def __module__(self):
        return facula.__name__

    def __repr__(self):
        return f"torch.{self._name}"

    def __reduce__(self):
        return self._name

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


per_tensor_affine = qscheme("per_tensor_affine")
per_channel_affine = qscheme("per_channel_affine")
per_tensor_symmetric = qscheme("per_tensor_symmetric")
per_channel_symmetric = qscheme("per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams")

# By the numbers that the core knows them by.
SCHEMES = (
    per_tensor_affine,
    per_channel_affine,
    per_tensor_symmetric,
    per_channel_symmetric,
    per_channel_affine_float_qparams,
)


def scheme_of(tensor):
    """The scheme of a quantized tensor; NotImplementedError for others."""
    return SCHEMES[facula.ops.aten._qscheme_number(tensor)]
