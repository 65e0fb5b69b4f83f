"""PyTorch's file format before 1.6: pickles one after the other, then the storages' bytes."""

import pickle
import struct
import sys

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

    def __init__(self, file_size):
        self._left = file_size
        self._itemsizes, self._counts, self._buffers = {}, {}, {}

    def note(self, key, dtype, count):
        """Remembers a storage; raises RuntimeError when it is larger than the file."""
        if key in self._counts:
            return
        self._left -= count * dtype.itemsize
        if self._left < 0:
            raise RuntimeError("load(): unexpected EOF: the storages are larger than the file")
        self._counts[key], self._itemsizes[key] = count, dtype.itemsize

    def read(self, file, keys):
        """Reads the bytes of the storages, in the order of `keys`."""
        is_valid = isinstance(keys, list) and all(isinstance(key, str) for key in keys)
        if not is_valid or len(keys) != len(self._counts) or set(keys) != set(self._counts):
            raise RuntimeError("load(): the list of storages is not what the pickle refers to")
        for key in keys:
            size = self._counts[key] * self._itemsizes[key]
            head = file.read(8)
            if len(head) != 8 or struct.unpack("<q", head)[0] != self._counts[key]:
                raise RuntimeError(f"load(): storage {key} has a wrong length, or none")
            data = bytearray(file.read(size))
            if len(data) != size:
                raise RuntimeError(
                    f"load(): unexpected EOF, expected {size - len(data)} more bytes. The file "
                    "might be corrupted."
                )
            self._buffers[key] = data

    def buffer(self, key):
        """The bytes of a storage, as a bytearray."""
        return self._buffers[key]


def check_head(magic, protocol, system):
    """Raises RuntimeError unless these three begin a file of the format."""
    if magic != _MAGIC:
        raise RuntimeError("load(): Invalid magic number; corrupt file?")
    if protocol != _PROTOCOL:
        shown = protocol if type(protocol) is int and abs(protocol) < 2**64 else type(protocol)
        raise RuntimeError(f"load(): Invalid protocol version: {shown}")
    if not isinstance(system, dict) or system.get("little_endian") is not True:
        raise RuntimeError("load(): the file is of a machine with another byte order")
