"""PyTorch's archive: a zip file whose records are stored as they are, at multiples of 64 bytes."""

import struct
import zlib

from . import _core
from ._files import read_into
from ._options import SETTINGS

ALIGNMENT = 64
_MAX_32 = 0xFFFFFFFF
_MAX_READ_VERSION = 10
_CHUNK = 1 << 20
_STORED, _DEFLATED = 0, 8
# A deflated record can claim a thousand times the file's size. What is unpacked of one archive may
# be so much more than the file; pickles less, since their objects take many times their bytes.
_UNPACKED, _FREE_UNPACKED = 32, 64 << 20
_UNPACKED_PICKLE, _FREE_PICKLE = 4, 1 << 20


class ArchiveWriter:
    """Writes records one after the other to anything that has `write`.

    Args:
        write (callable): takes bytes-like objects.
        name (str): the folder in the archive that all records are put into.
    """

    def __init__(self, write, name):
        self._write, self._name = write, name
        self._at = 0
        self._entries = []
        self._names_hash = self._content_hash = 0

    def _put(self, data):
        self._write(data)
        self._at += len(data)

    def add(self, name, data):
        """Writes a record of bytes, or of any contiguous buffer."""
        data = memoryview(data).cast("B")
        crc = _core.crc32(data) if SETTINGS.compute_crc32 else 0
        path = f"{self._name}/{name}".encode("utf-8", "surrogateescape")
        start, size = self._at, len(data)
        wide = struct.pack("<HHQQ", 1, 16, size, size) if size >= _MAX_32 else b""
        shown = _MAX_32 if wide else size
        padding = -(start + 30 + len(path) + len(wide) + 4) % SETTINGS.storage_alignment
        extra = wide + struct.pack("<2sH", b"FB", padding) + b"Z" * padding
        head = struct.pack(
            "<4s5HIIIHH",
            b"PK\3\4",
            45 if wide else 20,
            0x0800,
            0,
            0,
            0x21,
            crc,
            shown,
            shown,
            len(path),
            len(extra),
        )
        self._put(head + path + extra)
        self._put(data)
        self._entries.append((path, crc, size, start))
        self._names_hash = _core.crc32(path, self._names_hash)
        self._content_hash = _core.crc32(struct.pack("<I", crc), self._content_hash)

    def identity(self):
        """40 digits that follow from the names and checksums of the records so far."""
        return f"{self._names_hash:020d}{self._content_hash:020d}"

    def finish(self):
        """Writes the directory."""
        start = self._at
        for entry in self._entries:
            self._put(self._directory_entry(*entry))
        size, count = self._at - start, len(self._entries)
        wide_at = self._at
        self._put(
            struct.pack(
                "<4sQ2H2I4Q",
                b"PK\6\6",
                44,
                45,
                45,
                0,
                0,
                count,
                count,
                size,
                start,
            )
        )
        self._put(struct.pack("<4sIQI", b"PK\6\7", 0, wide_at, 1))
        few = min(count, 0xFFFF)
        self._put(
            struct.pack(
                "<4s4H2IH",
                b"PK\5\6",
                0,
                0,
                few,
                few,
                min(size, _MAX_32),
                min(start, _MAX_32),
                0,
            )
        )

    @staticmethod
    def _directory_entry(path, crc, size, start):
        wide = struct.pack("<QQ", size, size) if size >= _MAX_32 else b""
        wide += struct.pack("<Q", start) if start >= _MAX_32 else b""
        extra = struct.pack("<HH", 1, len(wide)) + wide if wide else b""
        shown = min(size, _MAX_32)
        return (
            struct.pack(
                "<4s6H3I5H2I",
                b"PK\1\2",
                45,
                45 if wide else 20,
                0x0800,
                0,
                0,
                0x21,
                crc,
                shown,
                shown,
                len(path),
                len(extra),
                0,
                0,
                0,
                0,
                min(start, _MAX_32),
            )
            + path
            + extra
        )


def _corrupt(what):
    return RuntimeError(
        f"load(): failed reading zip archive: {what}. The file may be damaged: not saved "
        "completely, or changed since."
    )


class ArchiveReader:
    """Reads records of an archive.

    Args:
        file: a seekable file object of bytes.

    Raises:
        RuntimeError: it is not a whole archive, or of an unknown version.
    """

    def __init__(self, file):
        # zipfile is slow to import, and only files need it.
        import zipfile

        self._file = file
        self._length = file.seek(0, 2)
        file.seek(0)
        try:
            self._zip = zipfile.ZipFile(file)
            names = self._zip.namelist()
        except (
            zipfile.BadZipFile,
            ValueError,
            OverflowError,
            struct.error,
            NotImplementedError,
            UnicodeError,
        ) as error:
            raise _corrupt(f"failed finding central directory ({error})") from error
        self._folder = self._folder_of(names)
        self._unpacked = 0
        self._ends = self._find_ends()
        self._check_version()

    @staticmethod
    def _folder_of(names):
        """What stands before all names: the folder with its slash."""
        if not names or "/" not in names[0]:
            raise _corrupt(f"file in archive is not in a subdirectory: {names[:1]}")
        return names[0].partition("/")[0] + "/"

    def _find_ends(self):
        """Where in the file each record must have ended: records may not share bytes."""
        infos = sorted(self._zip.infolist(), key=lambda info: info.header_offset)
        starts = [info.header_offset for info in infos]
        if len(set(starts)) != len(starts) or len(self._zip.NameToInfo) != len(starts):
            raise _corrupt("two records have the same name or place")
        ends = [*starts[1:], min(self._zip.start_dir, self._length)] if starts else []
        return {info.filename: end for info, end in zip(infos, ends, strict=True)}

    def _check_version(self):
        name = next((name for name in (".data/version", "version") if self.has(name)), None)
        if name is None:
            raise _corrupt("it has no record `version`")
        text = bytes(self.read(name, limit=64)).strip()
        version = int(text) if text.isdigit() else -1
        if not 1 <= version <= _MAX_READ_VERSION:
            raise RuntimeError(
                f"Attempted to read a PyTorch file with version {text!r}, but the maximum "
                f"supported version for reading is {_MAX_READ_VERSION}"
            )

    def names(self):
        """The names of all records."""
        return [name[len(self._folder) :] for name in self._zip.NameToInfo]

    def has(self, name):
        """Whether the archive has a record."""
        return self._folder + name in self._zip.NameToInfo

    def _info(self, name):
        info = self._zip.NameToInfo.get(self._folder + name)
        if info is None:
            raise _corrupt(f"failed locating file {name}: file not found")
        return info

    def size(self, name):
        """Number of bytes of a record, as the directory claims."""
        return self._info(name).file_size

    def offset(self, name):
        """Where a record's bytes stand in the file; None when it is compressed."""
        info = self._info(name)
        if info.compress_type not in (_STORED, _DEFLATED):
            raise _corrupt(
                f"record {name} is compressed by method {info.compress_type}; stored and deflated "
                "records are read"
            )
        start = info.header_offset
        self._file.seek(max(start, 0))
        head = self._file.read(30)
        if start < 0 or len(head) != 30 or head[:4] != b"PK\3\4":
            raise _corrupt(f"record {name} has no header")
        name_length, extra_length = struct.unpack("<HH", head[26:30])
        offset = start + 30 + name_length + extra_length
        if offset + info.compress_size > self._ends[info.filename]:
            raise _corrupt(
                f"record {name} of {info.compress_size} bytes reaches beyond its place in the file"
            )
        if info.flag_bits & 1:
            raise _corrupt(f"record {name} is encrypted")
        if info.compress_type == _DEFLATED:
            return None
        if info.compress_size != info.file_size:
            raise _corrupt(f"record {name} has two sizes")
        return offset

    def check_unpacked(self, name):
        """Raises RuntimeError before a deflated record takes far more memory than the file has."""
        size = self.size(name)
        self._unpacked += size
        most = _UNPACKED * self._length + _FREE_UNPACKED
        if name.endswith(".pkl"):
            most = min(most, _UNPACKED_PICKLE * self._length + _FREE_PICKLE)
        if max(size, self._unpacked) > most:
            raise _corrupt(
                f"deflated record {name} claims {size} bytes in a file of {self._length}; unpack "
                "it and store it as it is if you trust it"
            )

    def read(self, name, limit=None):
        """The bytes of a record, as a bytearray; its checksum is compared."""
        size = self.size(name)
        if limit is not None and size > limit:
            raise _corrupt(f"record {name} has {size} bytes, more than {limit}")
        offset = self.offset(name)
        if offset is None:
            return self._read_compressed(name)
        data = bytearray(size)
        self._fill(name, offset, data)
        return data

    def read_storage(self, name):
        """The bytes of a record as an untyped storage; its checksum is compared."""
        offset = self.offset(name)
        if offset is None:
            return _core.storage_over(self._read_compressed(name))
        storage = _core.uninitialized_storage(self.size(name))
        self._fill(name, offset, storage)
        return storage

    def _fill(self, name, offset, data):
        # Zero is what writers leave that compute no checksum.
        expected, found = self._info(name).CRC, 0

        def note(part):
            nonlocal found
            found = _core.crc32(part, found)

        checks = expected != 0 and SETTINGS.compute_crc32
        self._file.seek(offset)
        if read_into(self._file, data, note if checks else None) != len(data):
            raise _corrupt(f"record {name} is cut off")
        if checks and found != expected:
            raise _corrupt(
                f"record {name} has a wrong checksum (set_crc32_options(False) reads it all the "
                "same)"
            )

    def drop_checksums(self, data):
        """Sets the checksums of storages to zero, which means none, in the mapped file.

        Whoever writes to a mapped storage changes its record and not its checksum.
        """
        at = self._zip.start_dir
        while data[at : at + 4] == b"PK\1\2":
            name_length, extra_length, comment_length = struct.unpack(
                "<3H", data[at + 28 : at + 34]
            )
            name = bytes(data[at + 46 : at + 46 + name_length]).decode("utf-8", "surrogateescape")
            info = self._zip.NameToInfo.get(name)
            is_storage = name.startswith(f"{self._folder}data/")
            if is_storage and info is not None and info.compress_type == _STORED:
                data[at + 16 : at + 20] = bytes(4)
                data[info.header_offset + 14 : info.header_offset + 18] = bytes(4)
            at += 46 + name_length + extra_length + comment_length

    def _read_compressed(self, name):
        import zipfile

        self.check_unpacked(name)
        data, info = bytearray(), self._info(name)
        try:
            with self._zip.open(info) as stream:
                while piece := stream.read(_CHUNK):
                    data += piece
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            RuntimeError,
            NotImplementedError,
            OSError,
            ValueError,
        ) as error:
            raise _corrupt(f"record {name}: {error}") from error
        if len(data) != info.file_size:
            raise _corrupt(f"record {name} is cut off")
        return data
