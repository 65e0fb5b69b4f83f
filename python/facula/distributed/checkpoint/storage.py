"""What a storage of checkpoints offers."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any

from facula.distributed.checkpoint.metadata import MetadataIndex

__all__ = ["StorageReader", "StorageWriter", "WriteResult"]


@dataclass(frozen=True)
class WriteResult:
    """What was written: its name, size, and where the storage has it."""

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(abc.ABC):
    """Writes plans; `prepare_global_plan` and `finish` run on the coordinator alone."""

    @abc.abstractmethod
    def reset(self, checkpoint_id=None):
        """Begin another checkpoint."""

    @abc.abstractmethod
    def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
        """Get ready."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan):
        """Look at this rank's plan."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans):
        """Look at all ranks' plans."""

    @abc.abstractmethod
    def write_data(self, plan, planner):
        """Write this rank's items; a Future of WriteResults."""

    @abc.abstractmethod
    def finish(self, metadata, results):
        """Write the metadata: from here on the checkpoint is whole."""

    def discard(self):  # noqa: B027 - many storages have nothing to remove
        """Remove what this rank wrote: another rank has failed, and `finish` will not come."""

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        """Whether this class can store a checkpoint of that name."""
        return False

    def storage_meta(self):
        """What is known of the checkpoint (StorageMeta), or None."""
        return None


class StorageReader(abc.ABC):
    """Reads plans; `prepare_global_plan` runs on the coordinator alone."""

    @abc.abstractmethod
    def reset(self, checkpoint_id=None):
        """Begin another checkpoint."""

    @abc.abstractmethod
    def read_metadata(self, *args, **kwargs):
        """The checkpoint's Metadata."""

    @abc.abstractmethod
    def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
        """Get ready."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan):
        """Look at this rank's plan."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans):
        """Look at all ranks' plans."""

    @abc.abstractmethod
    def read_data(self, plan, planner):
        """Read this rank's items and give them to the planner; a Future."""

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        """Whether this class can read a checkpoint of that name."""
        return False
