"""Names for annotations: what may be given where a device, a size or a number is expected."""

from __future__ import annotations

import abc
import os
from builtins import bool as _bool
from builtins import bytes as _bytes
from builtins import complex as _complex  # noqa: F401
from builtins import float as _float
from builtins import int as _int
from builtins import str as _str
from collections.abc import Sequence
from typing import IO, Union

from facula import Size, SymBool, SymFloat, SymInt, Tensor, TypedStorage, UntypedStorage
from facula import device as _device
from facula import dtype as _dtype
from facula import layout as _layout  # noqa: F401

__all__ = ["Number", "Device", "FileLike", "Storage"]

_TensorOrTensors = Union[Tensor, Sequence[Tensor]]
_TensorOrOptionalTensors = Union[Tensor, Sequence[Union[Tensor, None]]]
_TensorOrTensorsOrGradEdge = Union[
    Tensor, Sequence[Tensor], "GradientEdge", Sequence["GradientEdge"]  # noqa: F821
]
_size = Union[Size, list[_int], tuple[_int, ...]]
_symsize = Union[Size, Sequence[Union[_int, SymInt]]]
_dispatchkey = _str

IntLikeType = Union[_int, SymInt]
FloatLikeType = Union[_float, SymFloat]
BoolLikeType = Union[_bool, SymBool]
py_sym_types = (SymInt, SymFloat, SymBool)
PySymType = Union[SymInt, SymFloat, SymBool]
Number = Union[_int, _float, _bool]
_Number = (_int, _float, _bool)
Device = Union[_device, _str, _int, None]
FileLike = Union[_str, os.PathLike, IO[_bytes]]


class Storage(abc.ABC):
    """What typed and untyped storages have in common; both are instances of it."""

    device: _device
    dtype: _dtype

    @abc.abstractmethod
    def nbytes(self):
        """The size in bytes."""

    @abc.abstractmethod
    def element_size(self):
        """The bytes of an element."""

    @abc.abstractmethod
    def data_ptr(self):
        """The address of the first byte."""

    @abc.abstractmethod
    def cpu(self):
        """The storage on the CPU."""

    @abc.abstractmethod
    def is_shared(self):
        """Whether other processes share the memory."""

    @abc.abstractmethod
    def share_memory_(self):
        """Move the memory to where other processes share it."""

    @classmethod
    @abc.abstractmethod
    def from_file(cls, filename, shared=False, nbytes=0):
        """A storage over a file's bytes."""


for _kind in (UntypedStorage, TypedStorage):
    Storage.register(_kind)
