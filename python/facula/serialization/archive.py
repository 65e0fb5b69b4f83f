"""The records of a checkpoint file, one by one."""

from __future__ import annotations

import facula
from facula.serialization._container import ArchiveReader


class PyTorchFileReader:
    """Reads single records of a file that `save` wrote.

    Args:
        file (str, path or file object): the file, of the zip format.

    Raises:
        RuntimeError: it is not such a file.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> facula.save({"a": facula.ones(2)}, file)
        >>> reader = PyTorchFileReader(file)
        >>> reader.has_record("data.pkl"), reader.get_record_size("data/0")
        (True, 8)
    """

    def __init__(self, file):
        is_file = hasattr(file, "read")
        self._own = None if is_file else open(file, "rb")
        self._archive = ArchiveReader(file if is_file else self._own)

    def __del__(self):
        if getattr(self, "_own", None) is not None:
            self._own.close()

    def get_all_records(self):
        """The names of all records (list of str)."""
        return self._archive.names()

    def has_record(self, name):
        """Whether there is a record of this name."""
        return self._archive.has(name)

    def get_record(self, name):
        """A record's bytes.

        Raises:
            RuntimeError: there is none of this name, or it is damaged.
        """
        return bytes(self._archive.read(name))

    def get_record_size(self, name):
        """How many bytes a record has."""
        return self._archive.size(name)

    def get_record_offset(self, name):
        """Where in the file a record's bytes begin."""
        return self._archive.offset(name)

    def get_storage_from_record(self, name, numel, dtype):
        """A tensor without elements whose storage is a record.

        Args:
            name (str): the record.
            numel (int): how many elements it has.
            dtype (dtype): their dtype.

        Raises:
            RuntimeError: the record has fewer bytes.
        """
        data = self._archive.read_storage(name)
        return facula.empty(0, dtype=dtype).set_(data, 0, (0,), (1,))

    def serialization_id(self):
        """The text that tells this file from others; empty where it has none."""
        name = ".data/serialization_id"
        return self.get_record(name).decode() if self.has_record(name) else ""
