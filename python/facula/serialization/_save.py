"""`save`: objects to PyTorch's file format."""

import io
import pickle
import sys

from . import _core
from ._container import ArchiveWriter
from ._files import archive_name, opened_to_write
from ._legacy import write_legacy
from ._options import SETTINGS
from ._pickler import fast_pickle, make_pickler, pickler_base


class _SavedStorages:
    """Storages that a pickle refers to: each once, under a number, and alive until written."""

    def __init__(self):
        self.by_key, self.itemsizes = {}, {}
        self._key_of = {}
        self._dtype_at = {}

    def key(self, storage, dtype):
        """The key of an untyped storage, as a string."""
        identity = _core.storage_identity(storage)
        if identity not in self._key_of:
            key = str(len(self.by_key))
            self._key_of[identity], self.by_key[key] = key, storage
            self.itemsizes[key] = dtype.itemsize
        return self._key_of[identity]

    def check_dtype(self, storage, dtype):
        """Raises RuntimeError when memory is saved as two dtypes, which the format cannot say."""
        if storage.device.type == "meta" or not storage.data_ptr():
            return
        if self._dtype_at.setdefault(storage.data_ptr(), dtype) != dtype:
            raise RuntimeError("save(): tensors that share a storage must have one dtype")


def _pickled(obj, pickle_module, protocol, legacy):
    if pickle_module is pickle:
        storages = _SavedStorages()
        data = fast_pickle(obj, protocol, storages, legacy)
        if data is not None:
            return data, storages
    storages, stream = _SavedStorages(), io.BytesIO()
    base = pickler_base(pickle_module)
    make_pickler(base, stream, protocol, storages, legacy).dump(obj)
    return stream.getvalue(), storages


def _storage_data(storage):
    if SETTINGS.skip_data or storage.device.type == "meta":
        return bytes(storage.nbytes())
    return _core.storage_bytes(storage)


def _write_archive(writer, data, storages, byteorder_last):
    order = ("byteorder", sys.byteorder.encode())
    writer.add("data.pkl", data)
    writer.add(".format_version", b"1")
    writer.add(".storage_alignment", str(SETTINGS.storage_alignment).encode())
    if not byteorder_last:
        writer.add(*order)
    for key, storage in storages.items():
        writer.add(f"data/{key}", _storage_data(storage))
    writer.add("version", b"3\n")
    if byteorder_last:
        writer.add(*order)
    writer.add(".data/serialization_id", writer.identity().encode())
    writer.finish()


def save(
    obj,
    f,
    pickle_module=pickle,
    pickle_protocol=2,
    _use_new_zipfile_serialization=True,
    _disable_byteorder_record=False,
):
    """Writes an object to a file that this package's and PyTorch's `load` read.

    A path is replaced in one step when all is written, so that a failure leaves the old file.

    Args:
        obj: any object that can be pickled; tensors that share storage go on sharing it.
        f: a path, or a file object with `write`.
        pickle_module: a module with a Pickler that derives from the standard one.
        pickle_protocol (int): version of the pickle format.

    Raises:
        AttributeError: `f` is neither a path nor a file object.
        ValueError: `pickle_protocol` is 0, which cannot refer to storages, and there are some.
        RuntimeError: the folder of a path does not exist.
        PicklingError: a part of the object cannot be pickled.

    Example:
        >>> facula.save({"weight": facula.ones(2)}, "weights.pt")
    """
    legacy = not _use_new_zipfile_serialization
    if legacy and SETTINGS.skip_data:
        raise RuntimeError("save(): skip_data needs _use_new_zipfile_serialization=True")
    with opened_to_write(f) as write:
        data, storages = _pickled(obj, pickle_module, pickle_protocol, legacy)
        if legacy:
            parts = ((_storage_data(s), storages.itemsizes[k]) for k, s in storages.by_key.items())
            write_legacy(write, data, list(storages.by_key), parts, pickle_protocol)
            return
        writer = ArchiveWriter(write, archive_name(f))
        _write_archive(writer, data, storages.by_key, _disable_byteorder_record)
