"""Checkpoints in folders as single files of save(), and the other way round.

`python -m facula.distributed.checkpoint.format_utils MODE SOURCE TARGET`, where MODE is
`torch_to_dcp` or `dcp_to_torch`.
"""

from __future__ import annotations

import argparse
import pickle

import facula
import facula.distributed as dist
from facula.distributed.checkpoint._nested_dict import flatten_state_dict
from facula.distributed.checkpoint.default_planner import (
    DefaultLoadPlanner,
    _EmptyStateDictLoadPlanner,
)
from facula.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter, _fill
from facula.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    TensorProperties,
    TensorStorageMetadata,
)
from facula.distributed.checkpoint.state_dict_loader import load_state_dict
from facula.distributed.checkpoint.state_dict_saver import save_state_dict
from facula.distributed.checkpoint.storage import StorageReader

__all__ = [
    "BroadcastingTorchSaveReader",
    "DynamicMetaLoadPlanner",
    "dcp_to_torch_save",
    "torch_save_to_dcp",
]


def dcp_to_torch_save(dcp_checkpoint_dir, torch_save_path):
    """Write a checkpoint as one file, as save() would.

    Args:
        dcp_checkpoint_dir: the folder of the checkpoint.
        torch_save_path: the file.
    """
    state = {}
    reader, planner = FileSystemReader(dcp_checkpoint_dir), _EmptyStateDictLoadPlanner()
    load_state_dict(state, reader, no_dist=True, planner=planner)
    facula.save(state, torch_save_path)


def torch_save_to_dcp(torch_save_path, dcp_checkpoint_dir):
    """Write what save() wrote as a checkpoint, which any number of ranks can load.

    Args:
        torch_save_path: the file. It is loaded with weights_only=False: it must be trusted.
        dcp_checkpoint_dir: the folder.
    """
    state = facula.load(torch_save_path, weights_only=False)
    save_state_dict(state, FileSystemWriter(dcp_checkpoint_dir), no_dist=True)


class DynamicMetaLoadPlanner(DefaultLoadPlanner):
    """Expects in a file what the state to be filled has: files of save() cannot be asked.

    Args:
        flatten_state_dict, flatten_sharded_tensors, allow_partial_load: as for DefaultLoadPlanner.
    """

    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        """Take what is to be filled.

        Raises:
            RuntimeError: something is no tensor.
        """
        super().set_up_planner(state_dict, metadata, is_coordinator)
        entries = {}
        for fqn, value in self.state_dict.items():
            if not isinstance(value, facula.Tensor):
                raise RuntimeError(
                    f"DynamicMetaLoadPlanner: expected tensors alone; got {type(value).__name__} "
                    f"for {fqn!r}"
                )
            whole = ChunkStorageMetadata(facula.Size([0] * value.dim()), value.size())
            entries[fqn] = TensorStorageMetadata(
                TensorProperties(dtype=value.dtype), value.size(), [whole]
            )
        self.metadata = Metadata(entries)


class BroadcastingTorchSaveReader(StorageReader):
    """Reads a file of save() on one rank, which sends all others each tensor.

    It goes with DynamicMetaLoadPlanner, and all ranks must want the same entries.

    Args:
        checkpoint_id: the file. It is loaded with weights_only=False: it must be trusted.
        coordinator_rank (int): the rank that reads.

    Example:
        >>> import tempfile
        >>> from facula.distributed import checkpoint
        >>> file = tempfile.mkdtemp() + "/one.pt"
        >>> facula.save({"w": facula.ones(2)}, file)
        >>> state, reader = {"w": facula.zeros(2)}, BroadcastingTorchSaveReader(file)
        >>> checkpoint.load(state, storage_reader=reader, planner=DynamicMetaLoadPlanner())
        >>> state
        {'w': tensor([1., 1.])}
    """

    def __init__(self, checkpoint_id=None, coordinator_rank=0):
        self.checkpoint_id, self.coordinator_rank = checkpoint_id, coordinator_rank

    def reset(self, checkpoint_id=None):
        """Begin another file, if one is given."""
        self.checkpoint_id = self.checkpoint_id if checkpoint_id is None else checkpoint_id

    def read_metadata(self, *args, **kwargs):
        """An empty Metadata: the planner says what is in the file."""
        return Metadata({})

    def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
        """Know whether this rank reads.

        Raises:
            RuntimeError: there is no file, or another rank than the coordinator would read.
        """
        if self.checkpoint_id is None:
            raise RuntimeError("BroadcastingTorchSaveReader: expected checkpoint_id; got None")
        self._has_ranks = dist.is_available() and dist.is_initialized()
        self._reads = not self._has_ranks or dist.get_rank() == self.coordinator_rank
        if self._reads != is_coordinator:
            raise RuntimeError(
                "BroadcastingTorchSaveReader: expected coordinator_rank to be the rank that "
                f"decides; got {self.coordinator_rank}"
            )

    def prepare_local_plan(self, plan):
        """Nothing to prepare."""
        return plan

    def prepare_global_plan(self, plans):
        """Nothing to prepare."""
        return plans

    def read_data(self, plan, planner):
        """Read the file on one rank, and fill this rank's part of each tensor; a Future.

        Raises:
            ValueError: the file lacks an entry, or has it with another size.
        """
        wanted = planner.metadata.state_dict_metadata
        found, told = self._read(wanted)
        if isinstance(told, Exception):
            raise told
        items = {item.storage_index.fqn: [] for item in plan.items}
        for item in plan.items:
            items[item.storage_index.fqn].append(item)
        for fqn, dtype in told.items():
            tensor = found[fqn] if self._reads else facula.empty(wanted[fqn].size, dtype=dtype)
            if self._has_ranks:
                dist.broadcast(tensor, self.coordinator_rank)
            for item in items.get(fqn, []):
                _fill(planner, item, tensor)
        done = facula.futures.Future()
        done.set_result(None)
        return done

    def _read(self, wanted):
        """The file's tensors where this rank reads; their dtypes, or what went wrong."""
        found, told = {}, None
        if self._reads:
            try:
                found = self._load(wanted)
                told = {fqn: tensor.dtype for fqn, tensor in found.items()}
            except (OSError, RuntimeError, ValueError, pickle.UnpicklingError) as error:
                told = error  # the others wait for tensors: they must hear of it
        if self._has_ranks:
            message = [told]
            dist.broadcast_object_list(message, self.coordinator_rank)
            told = message[0]
        return found, told

    def _load(self, wanted):
        state = facula.load(self.checkpoint_id, map_location="cpu", weights_only=False)
        flat, _ = flatten_state_dict(state)
        for fqn, entry in wanted.items():
            value = flat.get(fqn)
            if not isinstance(value, facula.Tensor) or value.size() != entry.size:
                got = tuple(value.size()) if isinstance(value, facula.Tensor) else type(value)
                raise ValueError(
                    f"load(): expected a tensor of {tuple(entry.size)} for {fqn!r} in "
                    f"{self.checkpoint_id}; got {got}"
                )
        return {fqn: flat[fqn].detach().contiguous() for fqn in wanted}


def main():
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=["torch_to_dcp", "dcp_to_torch"])
    parser.add_argument("source", help="the file or folder to read")
    parser.add_argument("target", help="the folder or file to write")
    given = parser.parse_args()
    convert = torch_save_to_dcp if given.mode == "torch_to_dcp" else dcp_to_torch_save
    convert(given.source, given.target)


if __name__ == "__main__":
    main()
