"""Plans of what each rank writes and reads, and who makes them."""

from __future__ import annotations

import abc
import io
import math
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import facula
from facula.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    MetadataIndex,
    TensorProperties,
)

__all__ = [
    "BytesIOWriteData",
    "LoadItemType",
    "LoadPlan",
    "LoadPlanner",
    "ReadItem",
    "SavePlan",
    "SavePlanner",
    "TensorWriteData",
    "WriteItem",
    "WriteItemType",
]


class WriteItemType(Enum):
    """What is written: a whole tensor, a piece of one, or something pickled."""

    TENSOR = auto()
    SHARD = auto()
    BYTE_IO = auto()


class LoadItemType(Enum):
    """What is read: a tensor, or something pickled."""

    TENSOR = auto()
    BYTE_IO = auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """How many bytes a pickle has."""

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """Which piece of which tensor is written."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: facula.Size


@dataclass(frozen=True)
class WriteItem:
    """One thing to write."""

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self):
        """Bytes of the piece of a tensor; None where it is no tensor."""
        if self.tensor_data is None:
            return None
        count = math.prod(self.tensor_data.chunk.sizes)
        return count * self.tensor_data.properties.dtype.itemsize


@dataclass(frozen=True)
class ReadItem:
    """One thing to read: a part of a stored piece, and where it goes in a piece of this rank."""

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: facula.Size
    storage_index: MetadataIndex
    storage_offsets: facula.Size
    lengths: facula.Size


@dataclass(frozen=True)
class SavePlan:
    """What a rank writes, with data of the storage and of the planner."""

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """What a rank reads, with data of the storage and of the planner."""

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(abc.ABC):
    """Decides what each rank writes. Calls come in the order of the methods.

    `create_global_plan` runs on the coordinator alone, the others on all ranks.
    """

    @abc.abstractmethod
    def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False):
        """Take what is to be saved."""

    @abc.abstractmethod
    def create_local_plan(self):
        """What this rank could write (SavePlan)."""

    @abc.abstractmethod
    def create_global_plan(self, all_plans):
        """The plans of all ranks and the checkpoint's Metadata."""

    @abc.abstractmethod
    def finish_plan(self, new_plan):
        """The last look at this rank's plan."""

    @abc.abstractmethod
    def resolve_data(self, write_item):
        """What is to be written for an item: Tensor or BytesIO."""


class LoadPlanner:
    """Decides what each rank reads, and puts it in its place."""

    @abc.abstractmethod
    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        """Take what is to be filled."""

    @abc.abstractmethod
    def create_local_plan(self):
        """What this rank needs (LoadPlan)."""

    @abc.abstractmethod
    def create_global_plan(self, global_plan):
        """The plans of all ranks, on the coordinator."""

    @abc.abstractmethod
    def finish_plan(self, central_plan):
        """The last look at this rank's plan."""

    @abc.abstractmethod
    def load_bytes(self, read_item, value: io.BytesIO):
        """Take a pickle that was read."""

    def resolve_bytes(self, read_item):
        """A stream to read a pickle into; not every planner has one."""
        raise NotImplementedError("LoadPlanner.resolve_bytes(): this planner has no streams")

    @abc.abstractmethod
    def resolve_tensor(self, read_item):
        """The tensor that an item is read into."""

    @abc.abstractmethod
    def commit_tensor(self, read_item, tensor):
        """Called once a tensor of resolve_tensor() has its numbers."""
