"""Settings of `save` and `load` that hold for the whole process or for a `with` block."""

import enum
import mmap as _mmap


class LoadEndianness(enum.Enum):
    """Byte order that `load` takes for files that do not tell theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class _Settings:
    def __init__(self):
        self.compute_crc32 = True
        self.storage_alignment = 64
        self.use_pinned_memory = False
        self.mmap = False
        self.calculate_storage_offsets = False
        self.load_endianness = None
        self.mmap_flags = getattr(_mmap, "MAP_PRIVATE", None)
        self.skip_data = False


SETTINGS = _Settings()


def get_crc32_options():
    """Whether `save` computes the checksum of each record; returns a bool."""
    return SETTINGS.compute_crc32


def set_crc32_options(compute_crc32):
    """Sets whether `save` computes checksums and `load` compares them.

    Without them other unzip programs may complain, and damage goes unnoticed.

    Args:
        compute_crc32 (bool): True to compute them.
    """
    SETTINGS.compute_crc32 = compute_crc32


def get_default_load_endianness():
    """Byte order for files that do not tell theirs; returns a LoadEndianness or None (native)."""
    return SETTINGS.load_endianness


def set_default_load_endianness(endianness):
    """Sets the byte order that `load` takes for files that do not tell theirs.

    Args:
        endianness (LoadEndianness): the byte order, or None for the machine's own.

    Raises:
        TypeError: `endianness` is neither.
    """
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError(
            "set_default_load_endianness(): expected a LoadEndianness or None; "
            f"got {type(endianness).__name__}"
        )
    SETTINGS.load_endianness = endianness


def get_default_mmap_options():
    """Flags that `load(..., mmap=True)` maps files with; returns an int."""
    return SETTINGS.mmap_flags


class set_default_mmap_options:
    """Sets the flags of `load(..., mmap=True)`, for good or, in a `with` statement, for its block.

    Args:
        flags (int): mmap.MAP_PRIVATE (changes stay in memory) or mmap.MAP_SHARED (changes reach
            the file).

    Raises:
        ValueError: `flags` is neither.
    """

    def __init__(self, flags):
        allowed = (_mmap.MAP_PRIVATE, _mmap.MAP_SHARED)
        if flags not in allowed:
            raise ValueError(
                "set_default_mmap_options(): expected mmap.MAP_PRIVATE or mmap.MAP_SHARED; "
                f"got {flags!r}"
            )
        self._before, SETTINGS.mmap_flags = SETTINGS.mmap_flags, flags

    def __enter__(self):
        return None

    def __exit__(self, *exception):
        SETTINGS.mmap_flags = self._before


class skip_data:
    """In its block `save` leaves room for storages without their bytes, and `load` reads none.

    Args:
        materialize_fake_tensors (bool): kept as an attribute; tensors of the meta device are
            saved without a storage either way.
    """

    def __init__(self, materialize_fake_tensors=False):
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self):
        self._before, SETTINGS.skip_data = SETTINGS.skip_data, True

    def __exit__(self, *exception):
        SETTINGS.skip_data = self._before
