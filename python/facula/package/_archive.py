"""The records of a package: of an archive in PyTorch's zip format, or of a folder."""

from __future__ import annotations

import os
import weakref

from ..serialization import _core
from ..serialization._container import ArchiveReader


class DirectoryReader:
    """Reads records from a folder that an archive was unpacked into.

    Args:
        directory (str): the folder.
    """

    def __init__(self, directory):
        self._directory = os.path.realpath(directory)

    def _path(self, name):
        path = os.path.realpath(os.path.join(self._directory, name))
        if os.path.commonpath([path, self._directory]) != self._directory:
            raise RuntimeError(f"record {name} is outside of {self._directory}")
        return path

    def has(self, name):
        """Whether there is a record."""
        return os.path.isfile(self._path(name))

    def names(self):
        """The names of all records."""
        found = []
        for folder, _, files in os.walk(self._directory):
            above = os.path.relpath(folder, self._directory).replace(os.sep, "/")
            found += [name if above == "." else f"{above}/{name}" for name in files]
        return sorted(found)

    def read(self, name):
        """The bytes of a record; RuntimeError when there is none."""
        try:
            with open(self._path(name), "rb") as file:
                return file.read()
        except OSError as error:
            raise RuntimeError(f"failed locating file {name}: file not found") from error

    def read_storage(self, name):
        """The bytes of a record as an untyped storage."""
        return _core.storage_over(bytearray(self.read(name)))


def opened_archive(file_or_buffer):
    """The reader and the shown name of a package, from a path, a folder or a file object.

    Raises:
        RuntimeError: there is no such file, or it is no archive.
    """
    if isinstance(file_or_buffer, (DirectoryReader, ArchiveReader)):
        return file_or_buffer, "<pytorch_file_reader>"
    if not isinstance(file_or_buffer, (str, os.PathLike)):
        return ArchiveReader(file_or_buffer), "<binary>"
    path = os.fspath(file_or_buffer)
    if os.path.isdir(path):
        return DirectoryReader(path), path
    try:
        file = open(path, "rb")  # noqa: SIM115  the importer reads from it as long as it lives
    except OSError as error:
        raise RuntimeError(f"open file failed: {error.strerror}, file path: {path}") from error
    try:
        reader = ArchiveReader(file)
    except BaseException:
        file.close()
        raise
    weakref.finalize(reader, file.close)
    return reader, path
