"""PyTorch's files before 0.1.10: a tar of `sys_info`, `pickle`, `tensors` and `storages`.

`storages` has a count, and for each storage a pickled key, location and class, then its number of
elements and their bytes; behind them which storages are views of others. `tensors` has a count, and
for each tensor a pickled key, the key of its storage and its class, then sizes, strides and offset.
The object in `pickle` refers to tensors and storages by their keys. Nothing is unpacked to disk.
"""

import struct
import tarfile
from _pickle import UnpicklingError

from . import _core
from ._files import read_into
from ._unpickle import ScanningUnpickler


def _damaged(what):
    return RuntimeError(f"load(): a tar archive of old is damaged: {what}")


def _refuse(pid):
    raise UnpicklingError("a persistent id stands where none is expected")


def _integers(file, count):
    data = file.read(8 * count)
    if len(data) != 8 * count:
        raise _damaged("it ends within a number")
    return struct.unpack(f"<{count}q", data)


class _Member:
    """One file of the archive: pickles and raw bytes one after the other."""

    def __init__(self, archive, name):
        info = next((m for m in archive if m.name in (name, "./" + name)), None)
        if info is None or not info.isreg() or info.issparse():
            raise _damaged(f"it has no file {name!r}")
        self.file, self.size = archive.extractfile(info), info.size

    def pickled(self):
        """The next object, made of plain values; classes other than storages' say nothing."""
        return ScanningUnpickler(self.file, _refuse, encoding="latin1").load()

    def count(self):
        """How many items follow."""
        number = self.pickled()
        if type(number) is not int or not 0 <= number <= self.size:
            raise _damaged("a count is no number, or larger than the file")
        return number

    def entry(self, what):
        """A pickled tuple of three, whose first item is a key."""
        entry = self.pickled()
        if not isinstance(entry, tuple) or len(entry) != 3 or type(entry[0]) not in (int, str):
            raise _damaged(f"an entry of {what} is malformed")
        return entry


class _TarLoader:
    def __init__(self, archive, restore):
        self._archive, self._restore = archive, restore
        self._objects = {}

    def _keep(self, key, value):
        # A pickle refers to keys as texts or as numbers.
        self._objects[str(key)] = value

    def _find(self, key, kind, what):
        found = self._objects.get(str(key)) if type(key) in (int, str) else None
        if found is None or not isinstance(found, kind):
            raise _damaged(f"it refers to a {what} that it does not have")
        return found

    def read_storages(self):
        member = _Member(self._archive, "storages")
        for _ in range(member.count()):
            key, location, kind = member.entry("storages")
            if not isinstance(kind, _core.StorageType) or not isinstance(location, str):
                raise _damaged("an entry of storages is malformed")
            self._keep(key, self._read_storage(member, kind.dtype, location))
        views = member.pickled()
        if not isinstance(views, list):
            raise _damaged("the views of storages are no list")
        for view in views:
            self._add_view(view)

    def _read_storage(self, member, dtype, location):
        (count,) = _integers(member.file, 1)
        size = count * dtype.itemsize
        if not 0 <= size <= member.size - member.file.tell():
            raise _damaged("a storage reaches beyond its end")
        data = bytearray(size)
        if read_into(member.file, data) != size:
            raise _damaged("a storage is cut off")
        return _core.typed(self._restore(_core.storage_over(data), location), dtype)

    def _add_view(self, view):
        if not isinstance(view, tuple) or len(view) != 4:
            raise _damaged("a view of a storage is malformed")
        key, root_key, begin, count = view
        root = self._find(root_key, _core.typed_class(), "storage")
        if any(type(n) is not int or n < 0 for n in (begin, count)):
            raise _damaged("a view of a storage is malformed")
        if begin + count > root.nbytes() // root.dtype.itemsize:
            raise _damaged("a view of a storage reaches outside")
        step = root.dtype.itemsize
        part = _core.part_of(_core.untyped(root), begin * step, (begin + count) * step)
        self._keep(key, _core.typed(part, root.dtype))

    def read_tensors(self):
        member = _Member(self._archive, "tensors")
        for _ in range(member.count()):
            key, storage_key, _ = member.entry("tensors")
            storage = self._find(storage_key, _core.typed_class(), "storage")
            # The number of dimensions was meant to have four bytes; four more follow it.
            dims = _integers(member.file, 1)[0] & 0xFFFFFFFF
            if dims > _core.MAX_DIMS:
                raise _damaged(f"a tensor has {dims} dimensions")
            size, stride = _integers(member.file, dims), _integers(member.file, dims)
            (offset,) = _integers(member.file, 1)
            geometry = (storage.dtype, offset, size, stride)
            self._keep(key, _core.tensor_over(_core.untyped(storage), *geometry, False))

    def read_object(self, make_unpickler):
        member = _Member(self._archive, "pickle")
        return make_unpickler(member.file, self._persistent).load()

    def _persistent(self, pid):
        # A class may come with its source, which says nothing about the values.
        if isinstance(pid, tuple) and pid and isinstance(pid[0], type):
            return pid[0]
        return self._find(pid, object, "tensor or storage")


def load_tar(file, restore, make_unpickler):
    """The object of a tar archive that PyTorch wrote before 0.1.10.

    Args:
        file: a seekable file object of bytes.
        restore (callable): puts a storage to its location.
        make_unpickler (callable): makes the reader of the object's pickle.

    Raises:
        RuntimeError: the archive is damaged.
    """
    try:
        with tarfile.open(fileobj=file, mode="r:") as archive:
            loader = _TarLoader(archive, restore)
            loader.read_storages()
            loader.read_tensors()
            return loader.read_object(make_unpickler)
    except tarfile.TarError as error:
        raise _damaged(str(error)) from error
