"""Settings of `facula.save` (`config.save`) and `facula.load` (`config.load`).

They are the ones that the functions of `facula.serialization` set, too.
"""

from __future__ import annotations

import contextlib

from facula.serialization._options import SETTINGS

__all__ = ["load", "save", "patch"]


class _Group:
    """Attributes that stand for settings; no others can be set."""

    _settings = {}

    def __getattr__(self, name):
        if name not in self._settings:
            raise AttributeError(f"config.{self._name}: no setting {name!r}")
        return getattr(SETTINGS, self._settings[name])

    def __setattr__(self, name, value):
        if name not in self._settings:
            raise AttributeError(f"config.{self._name}: no setting {name!r}")
        setattr(SETTINGS, self._settings[name], value)

    def __dir__(self):
        return sorted(self._settings)


class _Save(_Group):
    """How files are written.

    compute_crc32 (bool): whether each record has a checksum.
    storage_alignment (int): storages begin at multiples of so many bytes.
    use_pinned_memory_for_d2h (bool): whether copies from a device go through page-locked memory.
    """

    _name = "save"
    _settings = {
        "compute_crc32": "compute_crc32",
        "storage_alignment": "storage_alignment",
        "use_pinned_memory_for_d2h": "use_pinned_memory",
    }


class _Load(_Group):
    """How files are read.

    mmap (bool): whether `load` maps files by default.
    mmap_flags (int): how, as `mmap.mmap` takes it.
    endianness (LoadEndianness): byte order of files that do not tell theirs.
    calculate_storage_offsets (bool): taken for PyTorch's sake; the directory of a file, which is
        read anyway, tells where its storages are.
    """

    _name = "load"
    _settings = {
        "mmap": "mmap",
        "mmap_flags": "mmap_flags",
        "endianness": "load_endianness",
        "calculate_storage_offsets": "calculate_storage_offsets",
    }


save, load = _Save(), _Load()


@contextlib.contextmanager
def patch(changes=None, value=None, **others):
    """Sets settings for a `with` block.

    Args:
        changes (str or dict): the name of one setting, such as "load.mmap", or names to values.
        value: of the one setting.

    Raises:
        AttributeError: there is no such setting.

    Example:
        >>> facula.save({"weight": facula.ones(2)}, "weights.pt")
        >>> with facula.utils.serialization.config.patch("load.mmap", True):
        ...     state = facula.load("weights.pt")
    """
    wanted = {changes: value} if isinstance(changes, str) else {**(changes or {}), **others}
    before = {}
    try:
        for name, new in wanted.items():
            group, attribute = _place(name)
            before[name] = getattr(group, attribute)
            setattr(group, attribute, new)
        yield
    finally:
        for name, old in before.items():
            setattr(*_place(name), old)


def _place(name):
    group, _, attribute = name.partition(".")
    if group not in ("save", "load"):
        raise AttributeError(f"patch(): expected a name such as 'load.mmap'; got {name!r}")
    return {"save": save, "load": load}[group], attribute
