"""Checkpoints in folders: a file of pieces for each rank, and `.metadata`, which is written last.

The format is PyTorch's. Files get names that the folder does not have yet, so that an earlier
checkpoint in it stays whole until the new metadata takes its place.
"""

from __future__ import annotations

import io
import os
import pathlib
import pickle
import uuid
import zlib
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

import facula
from facula.distributed.checkpoint import metadata as _metadata
from facula.distributed.checkpoint.metadata import Metadata, StorageMeta
from facula.distributed.checkpoint.planner import LoadItemType, WriteItemType
from facula.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult

__all__ = ["FileSystemReader", "FileSystemWriter", "SerializationFormat"]

_SUFFIX = ".distcp"
_METADATA = ".metadata"


@dataclass
class _StorageInfo:
    """Where a piece is: PyTorch's fields, and a CRC-32 of its bytes, which PyTorch passes over."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: list | None = None
    checksum: int | None = None

    def __setstate__(self, state):
        self.transform_descriptors = self.checksum = None
        self.__dict__.update(state)


@dataclass
class _StoragePrefix:
    """How the names of a rank's files begin."""

    prefix: str


class SerializationFormat(Enum):
    """How tensors are stored."""

    TORCH_SAVE = "torch_save"
    SAFETENSORS = "safetensors"


class _Counted:
    """Writes to a file, and knows how much it wrote with which CRC-32."""

    def __init__(self, file):
        self._file, self.length, self.checksum = file, 0, 0

    def write(self, data):
        """Write bytes."""
        self._file.write(data)
        data = memoryview(data).cast("B")
        self.length += data.nbytes
        self.checksum = zlib.crc32(data, self.checksum)
        return data.nbytes

    def flush(self):
        """Nothing is held back here."""


class FileSystemWriter(StorageWriter):
    """Writes checkpoints into a folder.

    Args:
        path: the folder, made if it is missing.
        single_file_per_rank (bool): whether a rank writes one file; else one for each piece.
        sync_files (bool): whether files are on the disk before the metadata is written.
        thread_count, per_thread_copy_ahead, cache_staged_state_dict: accepted; files are written
            one after the other.
        overwrite (bool): whether a checkpoint in the folder may be replaced.
        serialization_format (SerializationFormat): TORCH_SAVE.

    Raises:
        NotImplementedError: another format.
    """

    def __init__(
        self,
        path,
        single_file_per_rank=True,
        sync_files=True,
        thread_count=1,
        per_thread_copy_ahead=10_000_000,
        cache_staged_state_dict=False,
        overwrite=True,
        _extensions=None,
        serialization_format=SerializationFormat.TORCH_SAVE,
    ):
        if serialization_format is not SerializationFormat.TORCH_SAVE or _extensions:
            raise NotImplementedError(
                "FileSystemWriter(): expected TORCH_SAVE without extensions; other formats are not "
                "written yet"
            )
        self.path = Path(path)
        self.single_file_per_rank, self.sync_files = single_file_per_rank, sync_files
        self.overwrite = overwrite
        self.save_id, self._made = str(uuid.uuid4()), []

    def reset(self, checkpoint_id=None):
        """Begin another checkpoint, in another folder if one is given."""
        if checkpoint_id is not None:
            self.path = Path(checkpoint_id)
        self.save_id, self._made = str(uuid.uuid4()), []

    def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
        """Get ready."""

    def prepare_local_plan(self, plan):
        """Make the folder.

        Raises:
            RuntimeError: it has a checkpoint that must not be replaced.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        if (self.path / _METADATA).exists() and not self.overwrite:
            raise RuntimeError(f"save(): {self.path} has a checkpoint, and overwrite is False")
        return plan

    def prepare_global_plan(self, plans):
        """Give each rank its names of files."""
        return [
            replace(plan, storage_data=_StoragePrefix(f"__{rank}_"))
            for rank, plan in enumerate(plans)
        ]

    def write_data(self, plan, planner):
        """Write this rank's items; a Future of WriteResults. What fails leaves no files."""
        batches = [plan.items] if self.single_file_per_rank else [[i] for i in plan.items]
        results, self._made = [], []
        try:
            for items in batches:
                if items:
                    results += self._write_file(plan.storage_data.prefix, items, planner)
        except BaseException:
            self.discard()
            raise
        done = facula.futures.Future()
        done.set_result(results)
        return done

    def discard(self):
        """Remove this rank's files of a checkpoint that another rank could not write."""
        made, self._made = self._made, []
        used = self._files_in_use() if made else ()
        for path in made:
            if path.name not in used:
                path.unlink(missing_ok=True)

    def _files_in_use(self):
        """Names of files of the folder's checkpoint."""
        path = self.path / _METADATA
        if not path.exists():
            return set()
        with open(path, "rb") as file:
            return {info.relative_path for info in _unpickle(file).storage_data.values()}

    def _new_file(self, prefix):
        number = 0
        while True:
            path = self.path / f"{prefix}{number}{_SUFFIX}"
            try:
                return path, open(path, "xb")
            except FileExistsError:
                number += 1

    def _write_file(self, prefix, items, planner):
        path, file = self._new_file(prefix)
        self._made.append(path)
        # Pickles first, as PyTorch has them.
        ordered = sorted(items, key=lambda item: item.type is not WriteItemType.BYTE_IO)
        with file:
            results = [self._write_item(file, path.name, item, planner) for item in ordered]
            if self.sync_files:
                file.flush()
                os.fsync(file.fileno())
        return results

    @staticmethod
    def _write_item(file, name, item, planner):
        data, begin, counted = planner.resolve_data(item), file.tell(), _Counted(file)
        if isinstance(data, io.BytesIO):
            counted.write(data.getbuffer())
        else:
            # Of a view its own numbers alone.
            data = data.detach().cpu()
            whole = data.untyped_storage().nbytes() == data.numel() * data.element_size()
            facula.save(data if whole else data.clone(), counted)
        info = _StorageInfo(name, begin, counted.length, None, counted.checksum)
        return WriteResult(item.index, counted.length, info)

    def finish(self, metadata, results):
        """Write the metadata: from here on the checkpoint is whole, and files of an earlier go."""
        stored = {result.index: result.storage_data for found in results for result in found}
        metadata.storage_data, metadata.storage_meta = stored, self.storage_meta()
        path = self.path / _METADATA
        new = path.with_name(_METADATA + ".tmp")
        with open(new, "wb") as file:
            _pickle(metadata, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
        used = {info.relative_path for info in stored.values()}
        for old in self.path.glob(f"__*{_SUFFIX}"):
            if old.name not in used:
                old.unlink(missing_ok=True)

    def storage_meta(self):
        """What is known of the checkpoint (StorageMeta)."""
        return StorageMeta(checkpoint_id=self.path, save_id=self.save_id)

    @property
    def checkpoint_id(self):
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        """Whether this class can store a checkpoint of that name: a path, no address."""
        return isinstance(checkpoint_id, Path) or "://" not in str(checkpoint_id)


class FileSystemReader(StorageReader):
    """Reads checkpoints from a folder, also PyTorch's.

    Args:
        path: the folder.
    """

    def __init__(self, path, _extension_registry=None):
        self.path = Path(path)
        self.storage_data, self.load_id = {}, str(uuid.uuid4())

    def reset(self, checkpoint_id=None):
        """Begin another checkpoint, of another folder if one is given."""
        self.storage_data = {}
        if checkpoint_id is not None:
            self.path = Path(checkpoint_id)

    def read_metadata(self, *args, **kwargs):
        """The checkpoint's Metadata.

        Raises:
            FileNotFoundError: there is none: the folder has no whole checkpoint.
        """
        path = self.path / _METADATA
        if not path.exists():
            raise FileNotFoundError(
                f"load(): {self.path} has no {_METADATA}, so no checkpoint was finished there"
            )
        with open(path, "rb") as file:
            return _unpickle(file)

    def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
        """Take the places of the pieces."""
        self.storage_data = metadata.storage_data

    def prepare_local_plan(self, plan):
        """Nothing to prepare."""
        return plan

    def prepare_global_plan(self, plans):
        """Nothing to prepare."""
        return plans

    def read_data(self, plan, planner):
        """Read this rank's items, piece by piece, and give them to the planner; a Future.

        Raises:
            RuntimeError: a piece is damaged.
        """
        of_file = {}
        for item in plan.items:
            of_file.setdefault(self.storage_data[item.storage_index].relative_path, []).append(item)
        for name, items in of_file.items():
            with open(self.path / name, "rb") as file:
                self._read_items(file, items, planner)
        done = facula.futures.Future()
        done.set_result(None)
        return done

    def _read_items(self, file, items, planner):
        items = sorted(items, key=lambda item: self.storage_data[item.storage_index].offset)
        known, tensor = None, None
        for item in items:
            if item.type is LoadItemType.BYTE_IO:
                planner.load_bytes(item, io.BytesIO(self._read_piece(file, item.storage_index)))
                continue
            if item.storage_index != known:
                known = item.storage_index
                stream = io.BytesIO(self._read_piece(file, known))
                tensor = facula.load(stream, map_location="cpu", weights_only=True)
            _fill(planner, item, tensor)

    def _read_piece(self, file, index):
        info = self.storage_data[index]
        file.seek(info.offset)
        data = file.read(info.length)
        if len(data) != info.length or info.checksum not in (None, zlib.crc32(data)):
            what = "is cut short" if len(data) != info.length else "has other bytes than were saved"
            raise RuntimeError(
                f"load(): {self.path / info.relative_path} is damaged: {index.fqn!r} at byte "
                f"{info.offset} {what}"
            )
        return data

    @property
    def checkpoint_id(self):
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        """Whether this class can read a checkpoint of that name."""
        return FileSystemWriter.validate_checkpoint_id(checkpoint_id)


def _fill(planner, item, tensor):
    """Gives the planner the part of a stored piece that an item asks for."""
    for dim, (begin, n) in enumerate(zip(item.storage_offsets, item.lengths, strict=True)):
        tensor = tensor.narrow(dim, begin, n)
    target = planner.resolve_tensor(item).detach()
    if target.shape != tensor.shape:
        raise ValueError(
            f"load(): expected {tuple(tensor.shape)} for {item.dest_index.fqn!r}; got "
            f"{tuple(target.shape)}"
        )
    target.copy_(tensor)
    planner.commit_tensor(item, target)


# ---- the file of metadata: a pickle, with PyTorch's names of classes


def _pickle(metadata, file):
    from facula.serialization._pickler import make_pickler

    make_pickler(pickle._Pickler, file, 4, {}, False).dump(metadata)


def _unpickle(file):
    from facula.serialization._unpickle import SafeUnpickler

    classes = [kind for kind in vars(_metadata).values() if isinstance(kind, type)]
    classes = [kind for kind in classes if kind.__module__ == _metadata.__name__]
    allowed = [*classes, _StorageInfo, _StoragePrefix, pathlib.PosixPath, pathlib.WindowsPath]
    found = SafeUnpickler(file, _no_storages, allowed=allowed).load()
    if not isinstance(found, Metadata):
        raise ValueError(f"load(): expected a Metadata in {file.name}; got {type(found).__name__}")
    return found


def _no_storages(pid):
    raise pickle.UnpicklingError("metadata has no tensors")
