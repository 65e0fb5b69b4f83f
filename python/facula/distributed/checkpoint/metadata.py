"""What a checkpoint holds: its entries, their pieces, and where each is stored."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import facula

__all__ = [
    "BytesStorageMetadata",
    "ChunkStorageMetadata",
    "Metadata",
    "MetadataIndex",
    "StorageMeta",
    "TensorProperties",
    "TensorStorageMetadata",
]


@dataclass
class ChunkStorageMetadata:
    """A piece of a tensor: where it begins and how large it is, by dimension."""

    offsets: facula.Size
    sizes: facula.Size


class _MEM_FORMAT_ENCODING(Enum):
    """Memory formats as the file of metadata has them."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


_FORMATS = {
    _MEM_FORMAT_ENCODING.TORCH_CONTIGUOUS_FORMAT: facula.contiguous_format,
    _MEM_FORMAT_ENCODING.TORCH_CHANNELS_LAST: facula.channels_last,
    _MEM_FORMAT_ENCODING.TORCH_PRESERVE_FORMAT: facula.preserve_format,
}


@dataclass
class TensorProperties:
    """What is needed to make a tensor, beside its size."""

    dtype: facula.dtype = field(default_factory=facula.get_default_dtype)
    layout: facula.layout = facula.strided
    requires_grad: bool = False
    memory_format: facula.memory_format = facula.contiguous_format
    pin_memory: bool = False
    strides: tuple[int, ...] | None = None

    def __getstate__(self):
        codes = {known: code for code, known in _FORMATS.items()}
        if self.memory_format not in codes:
            raise RuntimeError(f"TensorProperties: {self.memory_format} cannot be stored")
        return (
            self.dtype,
            self.layout,
            self.requires_grad,
            codes[self.memory_format],
            self.pin_memory,
            self.strides,
        )

    def __setstate__(self, state):
        self.dtype, self.layout, self.requires_grad, code, self.pin_memory, *strides = state
        self.memory_format = _FORMATS[code]
        self.strides = strides[0] if strides else None

    @staticmethod
    def create_from_tensor(tensor):
        """The properties of a tensor."""
        return TensorProperties(
            dtype=tensor.dtype,
            layout=tensor.layout,
            requires_grad=tensor.requires_grad,
            memory_format=facula.contiguous_format,
            pin_memory=False,
            strides=tuple(tensor.stride()),
        )


@dataclass
class TensorStorageMetadata:
    """A tensor that is stored in pieces."""

    properties: TensorProperties
    size: facula.Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """Something that is no tensor, stored as a pickle."""


@dataclass
class StorageMeta:
    """Which checkpoint this is."""

    checkpoint_id: str | os.PathLike | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """All that is known of a checkpoint: written last, so that it stands for a whole one."""

    state_dict_metadata: dict[str, TensorStorageMetadata | BytesStorageMetadata]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """The name of an entry's piece: of a tensor by where it begins; `index` is a hint."""

    fqn: str
    offset: facula.Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None):
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "offset", None if offset is None else facula.Size(offset))
