"""What part of a tensor shares a scale, and the base of observers that are told so."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from dataclasses import dataclass

import facula
from facula.nn import Module

from ._partial import with_args

__all__ = [
    "AffineQuantizedObserverBase",
    "Granularity",
    "MappingType",
    "PerAxis",
    "PerBlock",
    "PerGroup",
    "PerRow",
    "PerTensor",
    "PerToken",
    "TorchAODType",
    "ZeroPointDomain",
    "get_block_size",
]


class MappingType(enum.Enum):
    """How floats map to integers: about zero, or from the least to the largest.

    SYMMETRIC takes the larger of both ends for each side; SYMMETRIC_NO_CLIPPING_ERR takes the scale
    of the side that needs the larger one, so that nothing is cut off.
    """

    SYMMETRIC = enum.auto()
    SYMMETRIC_NO_CLIPPING_ERR = enum.auto()
    ASYMMETRIC = enum.auto()


class ZeroPointDomain(enum.Enum):
    """Whether the zero point is an integer, a float, or none."""

    INT = enum.auto()
    FLOAT = enum.auto()
    NONE = enum.auto()


class TorchAODType(enum.Enum):
    """Signed integers of fewer bits than a byte."""

    INT1 = enum.auto()
    INT2 = enum.auto()
    INT3 = enum.auto()
    INT4 = enum.auto()
    INT5 = enum.auto()
    INT6 = enum.auto()
    INT7 = enum.auto()


@dataclass(frozen=True)
class Granularity:
    """What part of a tensor shares a scale; the base of the classes that say it."""


@dataclass(frozen=True)
class PerTensor(Granularity):
    """One scale for the whole tensor."""


@dataclass(frozen=True)
class PerAxis(Granularity):
    """One scale for each index of a dimension.

    Args:
        axis (int): the dimension.
    """

    axis: int


@dataclass(frozen=True)
class PerBlock(Granularity):
    """One scale for each block.

    Args:
        block_size (tuple of int): a size for each dimension.
    """

    block_size: tuple[int, ...]


@dataclass(frozen=True)
class PerGroup(Granularity):
    """One scale for each group of elements in a row.

    Args:
        group_size (int): elements that share a scale.
    """

    group_size: int


class PerRow(Granularity):
    """One scale for each row: all but the last dimension."""


class PerToken(Granularity):
    """One scale for each token: all but the last dimension."""


_HOME = f"{facula.__name__}.ao.quantization.observer"  # where pickles of PyTorch have them
for _kind in (
    MappingType,
    ZeroPointDomain,
    TorchAODType,
    Granularity,
    *Granularity.__subclasses__(),
):
    _kind.__module__ = _HOME


def get_block_size(input_shape, granularity):
    """The sizes of the blocks that share a scale.

    Args:
        input_shape (tuple of int): of the tensor. granularity (Granularity).

    Returns:
        tuple of int

    Raises:
        AssertionError: no Granularity, or groups in a tensor that is no matrix.
        ValueError: a granularity that has no such sizes.

    Example:
        >>> get_block_size((4, 64), PerGroup(32))
        (1, 32)
    """
    if not isinstance(granularity, Granularity):
        raise AssertionError(
            f"get_block_size(): expected an object of a Granularity class; got {granularity!r}"
        )
    if isinstance(granularity, PerTensor):
        return input_shape
    if isinstance(granularity, PerAxis):
        sizes = list(input_shape)
        sizes[granularity.axis] = 1
        return tuple(sizes)
    if isinstance(granularity, (PerRow, PerToken)):
        return (1,) * (len(input_shape) - 1) + (input_shape[-1],)
    if isinstance(granularity, PerGroup):
        if len(input_shape) != 2:
            raise AssertionError(
                f"get_block_size(): expected a matrix with {granularity}; got shape {input_shape}"
            )
        return (1, granularity.group_size)
    raise ValueError(f"get_block_size(): no block sizes are known for {granularity}")


class AffineQuantizedObserverBase(ABC, Module):
    """What observers share that are told the granularity: they keep what they are told.

    Args:
        mapping_type (MappingType). target_dtype (facula.dtype): of the integers.
        granularity (Granularity). quant_min, quant_max (int): the range of the integers.
        eps (float): the least scale. scale_dtype, zero_point_dtype (facula.dtype).
        preserve_zero (bool): whether zero must be one of the values.
        zero_point_domain (ZeroPointDomain).

    Raises:
        AssertionError: no granularity.
    """

    with_args = classmethod(with_args)

    def __init__(
        self,
        mapping_type,
        target_dtype,
        granularity,
        quant_min=None,
        quant_max=None,
        eps=None,
        scale_dtype=None,
        zero_point_dtype=None,
        preserve_zero=True,
        zero_point_domain=ZeroPointDomain.INT,
        **kwargs,
    ):
        super().__init__()
        if granularity is None:
            raise AssertionError(f"{type(self).__name__}(): expected a granularity; got None")
        self.mapping_type, self.target_dtype = mapping_type, target_dtype
        self.granularity = granularity
        self.quant_min, self.quant_max, self.eps = quant_min, quant_max, eps
        self.scale_dtype, self.zero_point_dtype = scale_dtype, zero_point_dtype
        self.preserve_zero, self.zero_point_domain = preserve_zero, zero_point_domain
        # Known when a tensor was seen.
        self.block_size = self.original_dtype = None

    @abstractmethod
    def forward(self, input):
        """See a tensor, and return it."""

    @abstractmethod
    def calculate_qparams(self):
        """(scale, zero point) for what was seen."""

    def convert(self, model, observer_node):
        """Replace the observer in an exported program: NotImplementedError."""
        raise NotImplementedError(
            f"{type(self).__name__}.convert(): programs of export are not quantized by facula"
        )
