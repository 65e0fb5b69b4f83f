"""`load`: PyTorch's files to objects."""

import mmap as _mmap
import os
import pickle
import sys
from _pickle import UnpicklingError

import facula

from . import _core
from ._container import ALIGNMENT, ArchiveReader
from ._files import is_path, opened_to_read
from ._globals import _own_global, facula_name, torch_name
from ._legacy import LegacyStorages, check_magic, check_protocol, check_source
from ._locations import restorer
from ._options import SETTINGS, LoadEndianness
from ._unpickle import FastScanner, SafeUnpickler, ScanningUnpickler, unsafe_globals

_MAX_SMALL_RECORD = 64
_HOW_TO_ALLOW = (
    "Weights only load failed: with weights_only=True only tensors, numbers, strings and plain "
    "containers are read. Use weights_only=False only if you trust the file: it can then run any "
    "code.\n\t"
)


def _parse_persistent_id(pid):
    """Type, key, location and number of elements that a persistent id says."""
    if not isinstance(pid, tuple) or len(pid) not in (5, 6) or pid[0] != "storage":
        raise UnpicklingError("a persistent id is not that of a storage")
    kind, key, location, count = pid[1:5]
    if not isinstance(kind, _core.StorageType):
        raise UnpicklingError(f"an object of {type(kind)} is not a storage class")
    if not isinstance(key, str) or not isinstance(location, str):
        raise UnpicklingError("key or location of a storage is not a string")
    if type(count) is not int or not 0 <= count < 2**60:
        raise UnpicklingError("a storage has no valid number of elements")
    return kind.dtype, key, location, count


def _parse_view(pid, dtype, count):
    """Key and range of bytes of the view of a storage that a persistent id of old may mean."""
    view = pid[5] if len(pid) == 6 else None
    if view is None:
        return None
    if not isinstance(view, tuple) or len(view) != 3 or not isinstance(view[0], str):
        raise UnpicklingError("a view of a storage is malformed")
    key, begin, size = view
    if any(type(n) is not int or n < 0 for n in (begin, size)) or begin + size > count:
        raise UnpicklingError("a view of a storage reaches outside")
    return key, begin * dtype.itemsize, (begin + size) * dtype.itemsize


def _is_class_id(pid):
    """Whether a persistent id is that of a module's class, kept with its source."""
    return isinstance(pid, tuple) and len(pid) == 4 and pid[0] == "module"


def _swapped(data, itemsize):
    """`data` with the bytes of each element in the other order."""
    result = bytearray(len(data))
    for at in range(itemsize):
        result[at::itemsize] = data[itemsize - 1 - at :: itemsize]
    return result


def _number_size(dtype):
    return dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize


class _ArchiveStorages:
    """Storages of an archive, read when first referred to."""

    def __init__(self, archive, restore, mapped):
        self._archive, self._restore, self._mapped = archive, restore, mapped
        self._loaded = {}
        self._swaps = self._byte_order() != sys.byteorder

    def _byte_order(self):
        if self._archive.has("byteorder"):
            order = bytes(self._archive.read("byteorder", limit=_MAX_SMALL_RECORD))
            if order not in (b"little", b"big"):
                raise ValueError(f"Unknown endianness type: {order.decode('latin1')}")
            return order.decode()
        default = SETTINGS.load_endianness
        if default in (None, LoadEndianness.NATIVE):
            return sys.byteorder
        return default.name.lower()

    def __call__(self, pid):
        dtype, key, location, count = _parse_persistent_id(pid)
        if key not in self._loaded:
            self._loaded[key] = self._restore(self._read(key, dtype, count), location)
        return _core.typed(self._loaded[key], dtype)

    def _read(self, key, dtype, count):
        name, size = f"data/{key}", count * dtype.itemsize
        found = self._archive.size(name)
        if found != size:
            raise RuntimeError(
                f"load(): record size of {name} ({found} bytes) does not match expected size "
                f"({size} bytes = {count} elements of {dtype})"
            )
        if SETTINGS.skip_data:
            if self._archive.offset(name) is None:
                self._archive.check_unpacked(name)
            return _core.new_cpu_storage(size)
        swaps = self._swaps and _number_size(dtype) > 1
        if self._mapped is not None and not swaps and size:
            offset = self._archive.offset(name)
            if offset is not None and offset % ALIGNMENT == 0:
                return _core.storage_over(self._mapped[offset : offset + size])
        if swaps:
            data = self._archive.read(name)
            return _core.storage_over(_swapped(data, _number_size(dtype)))
        return self._archive.read_storage(name)


class _LegacyLoader:
    """Reads the pickles and storages of a file of the old format."""

    def __init__(self, file, file_size, restore, make_unpickler, weights_only):
        self._file, self._restore, self._make_unpickler = file, restore, make_unpickler
        self._file_size, self._weights_only = file_size, weights_only
        self._storages = LegacyStorages()
        self._loaded, self._views = {}, {}

    def load(self):
        """The object of the file."""
        check_magic(self._plain())
        check_protocol(self._plain())
        self._plain()  # what the machine was that wrote it; the bytes are always little-endian
        start = self._file.tell()
        self._scan(start)
        self._storages.read(self._file, self._plain(), self._file_size)
        end = self._file.tell()
        self._file.seek(start)
        result = self._make_unpickler(self._file, self._restored).load()
        self._file.seek(end)
        return result

    def _scan(self, start):
        """Finds the storages that the pickle refers to, and its end."""
        if not self._weights_only:
            try:
                FastScanner(self._file, self._note).load()
                return
            except Exception:
                # A call that the scanner does not know how to stand for.
                self._file.seek(start)
        ScanningUnpickler(self._file, self._note, encoding="latin1").load()

    def _plain(self):
        return SafeUnpickler(self._file, _refuse_persistent_id).load()

    def _note(self, pid):
        if _is_class_id(pid):
            return
        dtype, key, _, count = _parse_persistent_id(pid)
        self._storages.note(key, dtype, count)

    def _restored(self, pid):
        if _is_class_id(pid) and not self._weights_only:
            return self._class_of(*pid[1:])
        dtype, key, location, count = _parse_persistent_id(pid)
        if key not in self._loaded:
            self._loaded[key] = self._restore(self._storages.storage(key), location)
        view = _parse_view(pid, dtype, count)
        if view is None:
            return _core.typed(self._loaded[key], dtype)
        view_key, begin, end = view
        if view_key not in self._views:
            self._views[view_key] = _core.part_of(self._loaded[key], begin, end)
        return _core.typed(self._views[view_key], dtype)

    @staticmethod
    def _class_of(kind, source_file, source):
        # The classes of this package are not written as PyTorch's are, and need not be.
        is_ours = kind.__module__.partition(".")[0] in ("facula", "torch")
        if source_file and source and not is_ours:
            check_source(kind, source)
        return kind


def _refuse_persistent_id(pid):
    raise UnpicklingError("a persistent id stands where none is expected")


def _safe_maker(load_args):
    unknown = set(load_args) - {"encoding"}
    if unknown:
        raise TypeError(f"load() got an unexpected keyword argument {sorted(unknown)[0]!r}")
    return lambda stream, persistent_load: SafeUnpickler(stream, persistent_load, **load_args)


def _trusting_maker(pickle_module, load_args):
    class Unpickler(pickle_module.Unpickler):
        def find_class(self, module, name):
            full = torch_name(f"{module}.{name}")
            found = _own_global(full)
            if found is not None:
                return found
            if full == "torch._C._VariableFunctionsClass":
                return facula
            if torch_name(module).partition(".")[0] == "torch":
                # Some constants are pickled as `torch.NAME` of a module that imports torch.
                name = facula_name(name)
            return super().find_class(facula_name(module), name)

    def make(stream, persistent_load):
        unpickler = Unpickler(stream, **load_args)
        unpickler.persistent_load = persistent_load
        return unpickler

    return make


def _is_set(variable):
    return os.environ.get(variable, "0").lower() in ("1", "y", "yes", "true")


def _resolve_weights_only(weights_only, pickle_module):
    forced, forbidden = map(
        _is_set, ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    )
    if forced and forbidden:
        raise RuntimeError(
            "load(): TORCH_FORCE_WEIGHTS_ONLY_LOAD and TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD are both "
            "set; expected at most one of them"
        )
    if forced:
        weights_only = True
    if weights_only is None:
        return pickle_module is None and not forbidden
    if weights_only and pickle_module is not None:
        raise RuntimeError(
            "load(): pickle_module decides what is safe, so it needs weights_only=False"
        )
    return bool(weights_only)


def _map_file(path):
    """The whole file in memory, changes to it kept or dropped by `set_default_mmap_options`."""
    shared = SETTINGS.mmap_flags == _mmap.MAP_SHARED
    with open(path, "r+b" if shared else "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise EOFError("load(): the file is empty")
        prot = _mmap.PROT_READ | _mmap.PROT_WRITE
        return memoryview(_mmap.mmap(file.fileno(), 0, flags=SETTINGS.mmap_flags, prot=prot))


def _load_archive(file, restore, mapped, make_unpickler, weights_only):
    import io

    archive = ArchiveReader(file)
    if archive.has("constants.pkl"):
        if weights_only:
            raise RuntimeError(
                "load(): a TorchScript archive holds code, so it needs weights_only=False"
            )
        raise NotImplementedError("load(): TorchScript archives are read by jit.load")
    data = io.BytesIO(bytes(archive.read("data.pkl")))
    if mapped is not None and SETTINGS.mmap_flags == _mmap.MAP_SHARED:
        archive.drop_checksums(mapped)
    storages = _ArchiveStorages(archive, restore, mapped)
    return make_unpickler(data, storages).load()


def _load_legacy(file, restore, make_unpickler, weights_only):
    start = file.tell()
    size = file.seek(0, 2)
    file.seek(start)
    if size == start:
        raise EOFError("load(): Ran out of input: the file is empty")
    if _is_tar(file, start):
        from ._tar import load_tar

        return load_tar(file, restore, make_unpickler)
    return _LegacyLoader(file, size, restore, make_unpickler, weights_only).load()


def _is_tar(file, start):
    file.seek(start + 257)
    is_tar = file.read(5) == b"ustar"
    file.seek(start)
    return is_tar


def _begins_as_zip(file):
    start = file.tell()
    head = file.read(4)
    file.seek(start)
    if not isinstance(head, (bytes, bytearray)):
        raise TypeError(f"load(): expected a file of bytes; got {type(head).__name__}")
    return head == b"PK\3\4"


def load(
    f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args
):
    """Reads an object that this package or PyTorch saved.

    By default nothing of the file is executed: only tensors, plain containers, numbers, strings
    and what `serialization.add_safe_globals` allows are built.

    Args:
        f: a path, or a seekable file object of bytes.
        map_location: where storages go: a device, its name, a dict from saved to wanted location,
            or a callable of storage and location.
        pickle_module: a module with an Unpickler; implies weights_only=False.
        weights_only (bool): False lets the file name any function or class, and so run any code.
        mmap (bool): True maps the file into memory in place of reading it; `f` must be a path.
            None: as `utils.serialization.config.load.mmap` says, which is False.
        pickle_load_args: for the Unpickler, such as `encoding`.

    Returns:
        The object.

    Raises:
        UnpicklingError: the file is malformed, or names what is not allowed.
        RuntimeError: the archive is damaged, or a device is missing.
        EOFError: the file ends too early.
        ValueError: `mmap` with a file object.

    Example:
        >>> facula.save({"weight": facula.ones(2)}, "weights.pt")
        >>> facula.load("weights.pt")
        {'weight': tensor([1., 1.])}
    """
    weights_only = _resolve_weights_only(weights_only, pickle_module)
    mmap = SETTINGS.mmap if mmap is None else mmap
    if mmap and not is_path(f):
        raise ValueError(f"load(): mmap=True needs a path; got {type(f).__name__}")
    make_unpickler = (
        _safe_maker(pickle_load_args)
        if weights_only
        else _trusting_maker(pickle_module or pickle, pickle_load_args)
    )
    restore = restorer(map_location)
    with opened_to_read(f) as file:
        try:
            if _begins_as_zip(file):
                mapped = _map_file(f) if mmap else None
                return _load_archive(file, restore, mapped, make_unpickler, weights_only)
            if mmap:
                raise RuntimeError("load(): mmap=True needs a file in the zip format")
            return _load_legacy(file, restore, make_unpickler, weights_only)
        except UnpicklingError as error:
            if not weights_only:
                raise
            raise UnpicklingError(_HOW_TO_ALLOW + str(error)) from error


def get_unsafe_globals_in_checkpoint(f):
    """Names that `load` with weights_only=True would refuse.

    Args:
        f: a path, or a seekable file object of bytes, of a file in the zip format.

    Returns:
        list of str: full names of functions and classes; [] when all are allowed.

    Raises:
        ValueError: the file is not in the zip format.
    """
    with opened_to_read(f) as file:
        if not _begins_as_zip(file):
            raise ValueError(
                "get_unsafe_globals_in_checkpoint(): expected a file in the zip format"
            )
        data = bytes(ArchiveReader(file).read("data.pkl"))
    return unsafe_globals(data)
