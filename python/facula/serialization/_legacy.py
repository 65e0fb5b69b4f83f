"""PyTorch's file format before 1.6: pickles one after the other, then the storages' bytes."""

import pickle
import struct
import sys
import warnings

from . import _core
from ._files import read_into
from ._support import SourceChangeWarning

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001
_TYPE_SIZES = {"short": 2, "int": 4, "long": 4}


def write_legacy(write, data, keys, parts, protocol):
    """Writes a pickled object and its storages.

    Args:
        write (callable): takes bytes.
        data (bytes): the pickled object.
        keys (list): of the storages.
        parts (iterable): for each key, the storage's bytes and the size of its elements.
        protocol (int): version of the pickle format.
    """
    system = {
        "protocol_version": _PROTOCOL,
        "little_endian": sys.byteorder == "little",
        "type_sizes": _TYPE_SIZES,
    }
    for head in (_MAGIC, _PROTOCOL, system):
        write(pickle.dumps(head, protocol))
    write(data)
    write(pickle.dumps(keys, protocol))
    for content, itemsize in parts:
        write(struct.pack("=q", len(content) // itemsize))
        write(content)


class LegacyStorages:
    """What the persistent ids of a file mean: first collected, then with their bytes.

    A pickle comes before the bytes of its storages, so it is read twice.
    """

    def __init__(self):
        self._itemsizes, self._counts, self._read = {}, {}, {}

    def note(self, key, dtype, count):
        """Remembers a storage and how many elements it has."""
        self._counts.setdefault(key, count)
        self._itemsizes.setdefault(key, dtype.itemsize)

    def read(self, file, keys, file_size):
        """Reads the bytes of the storages, in the order of `keys`, from a file of a size.

        Raises:
            RuntimeError: the file has not what the keys and counts say.
        """
        is_valid = isinstance(keys, list) and all(isinstance(key, str) for key in keys)
        if not is_valid or len(keys) != len(self._counts) or set(keys) != set(self._counts):
            raise RuntimeError("load(): the list of storages is not what the pickle refers to")
        for key in keys:
            head = file.read(8)
            if len(head) != 8 or struct.unpack("<q", head)[0] != self._counts[key]:
                raise RuntimeError(f"load(): storage {key} has a wrong length, or none")
            self._read[key] = self._read_one(file, key, file_size - file.tell())

    def _read_one(self, file, key, available):
        size = self._counts[key] * self._itemsizes[key]
        if size > available:
            raise RuntimeError(
                f"load(): unexpected EOF, expected {size - available} more bytes. The file might "
                "be corrupted."
            )
        storage = _core.uninitialized_storage(size)
        if read_into(file, storage) != size:
            raise RuntimeError(f"load(): storage {key} is cut off")
        return storage

    def storage(self, key):
        """An untyped storage that was read."""
        return self._read[key]


def check_magic(magic):
    """Raises RuntimeError unless this is what a file of the format begins with."""
    if magic != _MAGIC:
        raise RuntimeError("load(): Invalid magic number; corrupt file?")


def check_protocol(protocol):
    """Raises RuntimeError unless this version of the format is read."""
    if protocol != _PROTOCOL:
        shown = protocol if type(protocol) is int and abs(protocol) < 2**64 else type(protocol)
        raise RuntimeError(f"load(): Invalid protocol version: {shown}")


def source_of(kind):
    """File and text of a class's source; two times None when there is none to find."""
    import inspect

    try:
        return inspect.getsourcefile(kind), inspect.getsource(kind)
    except (OSError, TypeError):
        return None, None


def check_source(kind, saved):
    """Warns when a class is no longer written as it was when an object of it was saved."""
    _, now = source_of(kind)
    if now is None or now == saved:
        return
    warnings.warn(
        f"load(): the source of class {kind.__module__}.{kind.__qualname__} has changed since "
        "the file was written",
        SourceChangeWarning,
        stacklevel=2,
    )
