"""Checkpoints as Hugging Face's libraries keep them: safetensors files, and an index of them."""

from __future__ import annotations

import json
import math
import os
import uuid
import warnings
from collections import defaultdict
from dataclasses import dataclass, replace

import facula
from facula.distributed.checkpoint._consolidate_hf_safetensors import (
    _SHARDING_INFO,
    _check_mapping,
    _file_name,
    _find_pieces,
    _size_of,
    _write_index,
    consolidate_safetensors_files,
)
from facula.distributed.checkpoint.filesystem import (
    FileSystemReader,
    FileSystemWriter,
    SerializationFormat,
    _fill,
)
from facula.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from facula.distributed.checkpoint.planner import WriteItemType
from facula.distributed.checkpoint.storage import WriteResult
from facula.serialization._files import opened_to_write
from facula.serialization.safetensors import read_entries, read_tensor, write_tensors

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]

_SHARDED_FOLDER = "sharded"


@dataclass
class _HFStorageInfo:
    """Where a piece is; its place within the file says the file's header."""

    relative_path: str
    shape: facula.Size
    dtype: facula.dtype


class HuggingFaceStorageWriter(FileSystemWriter):
    """Writes states of tensors as safetensors files that Hugging Face's libraries read.

    The format has tensors alone: what is none is left out, with a warning.

    Args:
        path: the folder, made if it is missing.
        fqn_to_index_mapping (dict): from the name of each tensor to the number of its file, from 1;
            all go into one file if None.
        thread_count (int): accepted; a rank writes one file after the other.
        save_distributed (bool): whether each rank writes its pieces into files of its own; else one
            rank has the whole tensors.
        enable_consolidation (bool): whether ranks write into the folder `sharded`, and, with
            save_distributed, their pieces become whole tensors in the folder itself.
        thread_count_consolidation (int): how many files are consolidated at once.

    Example:
        >>> import tempfile
        >>> from facula.distributed import checkpoint
        >>> folder, state = tempfile.mkdtemp(), {"w": facula.ones(2)}
        >>> writer = HuggingFaceStorageWriter(folder)
        >>> _ = checkpoint.save(state, storage_writer=writer)
        >>> state["w"].zero_()
        tensor([0., 0.])
        >>> checkpoint.load(state, storage_reader=HuggingFaceStorageReader(folder))
        >>> state
        {'w': tensor([1., 1.])}
    """

    def __init__(
        self,
        path,
        fqn_to_index_mapping=None,
        thread_count=1,
        save_distributed=False,
        enable_consolidation=False,
        thread_count_consolidation=1,
    ):
        super().__init__(path, thread_count=thread_count)
        self.serialization_format = SerializationFormat.SAFETENSORS
        self.fqn_to_index_mapping = fqn_to_index_mapping
        self.save_distributed = save_distributed
        self.enable_consolidation = enable_consolidation
        self.thread_count_consolidation = thread_count_consolidation
        self._set_folder(self.path)

    def _set_folder(self, path):
        self.whole_path = path
        self.path = path / _SHARDED_FOLDER if self.enable_consolidation else path

    def reset(self, checkpoint_id=None):
        """Begin another checkpoint, in another folder if one is given."""
        super().reset(checkpoint_id)
        if checkpoint_id is not None:
            self._set_folder(self.path)

    def prepare_local_plan(self, plan):
        """Make the folder."""
        self.path.mkdir(parents=True, exist_ok=True)
        return plan

    def prepare_global_plan(self, plans):
        """Give each rank the number of its files.

        Raises:
            ValueError: several ranks have something to write, and save_distributed is False; a
                tensor has no file.
        """
        names = {i.index.fqn for p in plans for i in _tensors(p)}
        if self.fqn_to_index_mapping is not None:
            _check_mapping("HuggingFaceStorageWriter", names, self.fqn_to_index_mapping)
        writers = [rank for rank, plan in enumerate(plans) if _tensors(plan)]
        if len(writers) > 1 and not self.save_distributed:
            raise ValueError(
                "HuggingFaceStorageWriter(): expected one rank that has all tensors (see "
                "DefaultSavePlanner's dedup_save_to_lowest_rank), or save_distributed=True; got "
                f"tensors of ranks {writers}"
            )
        return [
            replace(plan, storage_data=rank + 1 if self.save_distributed else None)
            for rank, plan in enumerate(plans)
        ]

    def write_data(self, plan, planner):
        """Write this rank's items; a Future of WriteResults."""
        items = _tensors(plan)
        lost = sorted({item.index.fqn for item in plan.items} - {i.index.fqn for i in items})
        if lost:
            warnings.warn(
                f"HuggingFaceStorageWriter: the format has tensors alone; left out: {lost[:5]}",
                stacklevel=2,
            )
        mapping, of_file = self.fqn_to_index_mapping or {}, defaultdict(list)
        for item in items:
            of_file[mapping.get(item.index.fqn, 1)].append(item)
        count = max(mapping.values(), default=1)
        results = []
        for index, mine in of_file.items():
            name = _file_name(index, count, plan.storage_data)
            results += self._write_tensors(name, mine, planner)
        done = facula.futures.Future()
        done.set_result(results)
        return done

    def _write_tensors(self, name, items, planner):
        tensors, told = {}, {}
        for item in items:
            fqn = item.index.fqn
            if fqn in tensors:
                raise ValueError(
                    f"HuggingFaceStorageWriter(): expected one piece of {fqn!r} on each rank; got "
                    "several, which the format cannot name"
                )
            tensors[fqn] = planner.resolve_data(item).detach()
            told[fqn] = {"saved_offsets": list(item.tensor_data.chunk.offsets)}
        shapes = {fqn: (tensor.dtype, tensor.shape) for fqn, tensor in tensors.items()}
        metadata = {_SHARDING_INFO: json.dumps(told), "DCP_VERSION": "1.0", "format": "pt"}
        with opened_to_write(os.fspath(self.path / name)) as write:
            write_tensors(write, shapes, tensors.__getitem__, metadata)
        return [
            WriteResult(
                item.index,
                item.tensor_storage_size(),
                _HFStorageInfo(name, *reversed(shapes[item.index.fqn])),
            )
            for item in items
        ]

    def finish(self, metadata, results):
        """Make whole tensors, or write the index of the files."""
        stored = {r.index.fqn: r for found in results for r in found}
        if not self.save_distributed:
            entries = metadata.state_dict_metadata
            sizes = {
                fqn: math.prod(entries[fqn].size) * entries[fqn].properties.dtype.itemsize
                for fqn in stored
            }
            files = {fqn: r.storage_data.relative_path for fqn, r in stored.items()}
            _write_index(self.path, sizes, files)
        elif self.enable_consolidation:
            mapping = self.fqn_to_index_mapping or dict.fromkeys(stored, 1)
            threads = self.thread_count_consolidation
            consolidate_safetensors_files(self.path, self.whole_path, mapping, threads)


def _tensors(plan):
    return [item for item in plan.items if item.type is not WriteItemType.BYTE_IO]


class HuggingFaceStorageReader(FileSystemReader):
    """Reads safetensors files, of Hugging Face's libraries or of ranks, whatever wrote them.

    Args:
        path: the folder.
        thread_count (int): accepted; a rank reads one file after the other.
    """

    def __init__(self, path, thread_count=1):
        super().__init__(path)
        self.thread_count = thread_count

    def read_metadata(self, *args, **kwargs):
        """What the headers of the files say, as Metadata.

        Raises:
            FileNotFoundError: there are no safetensors files.
            ValueError: a file is damaged.
        """
        entries, places = {}, {}
        for fqn, pieces in _find_pieces(self.path).items():
            chunks = []
            for path, entry, offsets in pieces:
                shape, offsets = facula.Size(entry.shape), facula.Size(offsets)
                chunks.append(ChunkStorageMetadata(offsets, shape))
                info = _HFStorageInfo(os.fspath(path), shape, entry.dtype)
                places[MetadataIndex(fqn, offsets)] = info
            properties = TensorProperties(dtype=pieces[0].entry.dtype)
            entries[fqn] = TensorStorageMetadata(properties, _size_of(pieces), chunks)
        meta = StorageMeta(load_id=str(uuid.uuid4()))
        return Metadata(entries, storage_data=places, storage_meta=meta)

    def _read_items(self, file, items, planner):
        entries, _ = read_entries(file)
        for item in items:
            fqn = item.storage_index.fqn
            _fill(planner, item, read_tensor(file, fqn, entries[fqn]))
