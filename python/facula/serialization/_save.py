"""`save`: objects to PyTorch's file format."""

import importlib
import io
import pickle
import sys
import types
import warnings

import facula

from . import _core, _rebuild
from ._container import ALIGNMENT, ArchiveWriter
from ._files import archive_name, opened_to_write
from ._globals import torch_name
from ._legacy import source_of, write_legacy
from ._locations import location_tag
from ._options import SETTINGS

_PLAIN_TYPES = frozenset(
    {
        int,
        float,
        bool,
        str,
        bytes,
        list,
        tuple,
        dict,
        set,
        type(None),
        complex,
        _rebuild.GlobalName,
    }
)


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


def _storage_type(storage):
    """Name of the storage class, and dtype, that a file gives to a storage object."""
    if isinstance(storage, facula.UntypedStorage):
        return _rebuild_name("torch.storage", "UntypedStorage"), facula.uint8
    name = _core.STORAGE_NAMES.get(_core.dtype_name(storage.dtype))
    if name is None:
        return _rebuild_name("torch.storage", "UntypedStorage"), facula.uint8
    return _rebuild_name("torch", name), storage.dtype


_names = {}


def _rebuild_name(module, name):
    # One object for each name, so that a pickle writes it once.
    return _names.setdefault((module, name), _rebuild.GlobalName(module, name))


def _pickler_base(pickle_module):
    base = getattr(pickle_module, "_Pickler", None) or getattr(pickle_module, "Pickler", None)
    if base is None or not issubclass(base, pickle._Pickler):
        raise NotImplementedError(
            f"save(): pickle_module {pickle_module!r} needs a Pickler that derives from "
            "pickle._Pickler"
        )
    return base


def _make_pickler(base, stream, protocol, storages, legacy):
    """A pickler that writes this package's types under PyTorch's names."""

    class Pickler(base):
        dispatch = dict(base.dispatch)
        classes = set()  # of modules, whose source was written already

        def persistent_id(self, obj):
            if legacy and isinstance(obj, type):
                return self._class_id(obj)
            if not isinstance(obj, (facula.UntypedStorage, facula.storage.TypedStorage)):
                return None
            if self.proto == 0:
                raise ValueError(
                    "save(): tensors and storages need a pickle_protocol of at least 1; got 0"
                )
            storage = _core.untyped(obj)
            kind, dtype = _storage_type(obj)
            storages.check_dtype(storage, dtype)
            count = storage.nbytes() // dtype.itemsize
            key = storages.key(storage, dtype)
            pid = ("storage", kind, key, location_tag(storage), count)
            return (*pid, None) if legacy else pid

        def _class_id(self, kind):
            # Not of classes of this package: PyTorch would find its own written otherwise.
            is_ours = torch_name(kind.__module__).partition(".")[0] == "torch"
            if is_ours or kind in self.classes or not issubclass(kind, facula.nn.Module):
                return None
            self.classes.add(kind)
            return ("module", kind, *source_of(kind))

        def reducer_override(self, obj):
            if type(obj) in _PLAIN_TYPES:
                return NotImplemented
            return _reduction(obj)

        def save_global(self, obj, name=None):
            if isinstance(obj, _rebuild.GlobalName):
                self._write_name(obj, obj.module, obj.name)
                return
            module = getattr(obj, "__module__", None) or ""
            renamed = torch_name(module)
            if "<locals>" in (getattr(obj, "__qualname__", None) or ""):
                raise AttributeError(f"Can't pickle local object {obj.__qualname__!r}")
            if renamed == module:
                super().save_global(obj, name)
                return
            name = name or getattr(obj, "__qualname__", None) or obj.__name__
            _check_importable(obj, module, name)
            self._write_name(obj, renamed, name)

        def _write_name(self, obj, module, name):
            if self.proto >= 4:
                self.save(module)
                self.save(name)
                self.write(pickle.STACK_GLOBAL)
            else:
                self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
            self.memoize(obj)

        dispatch[_rebuild.GlobalName] = save_global
        dispatch[types.FunctionType] = save_global

    return Pickler(stream, protocol)


def _check_importable(obj, module, name):
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not obj:
        raise pickle.PicklingError(f"Can't pickle {obj!r}: it's not found as {module}.{name}")


def _reduction(obj):
    """How to pickle one of this package's own objects; NotImplemented for all others."""
    if isinstance(obj, facula.Tensor):
        return _tensor_reduction(obj)
    if isinstance(obj, facula.dtype):
        return _named(obj)
    if isinstance(obj, facula.Size):
        return _rebuild_name("torch", "Size"), (tuple(obj),)
    if isinstance(obj, facula.device):
        place = (obj.type,) if obj.index is None else (obj.type, obj.index)
        return _rebuild_name("torch", "device"), place
    if isinstance(obj, facula.layout):
        return _rebuild.layout_reduction(obj)
    return NotImplemented


def _named(dtype):
    return _core.dtype_name(dtype)


def _tensor_reduction(tensor):
    own = (facula.Tensor.__reduce_ex__, _parameter_class().__reduce_ex__)
    if type(tensor).__reduce_ex__ not in own:
        return NotImplemented
    for hook in (tensor._backward_hooks or {}).values():
        warnings.warn(f"save(): backward hook {hook!r} on a tensor is not saved", stacklevel=2)
    return _rebuild.tensor_reduction(tensor)


def _parameter_class():
    from facula.nn.parameter import Parameter

    return Parameter


def _pickled(obj, pickle_module, protocol, legacy):
    storages, stream = _SavedStorages(), io.BytesIO()
    base = _pickler_base(pickle_module)
    _make_pickler(base, stream, protocol, storages, legacy).dump(obj)
    return stream.getvalue(), storages


def _storage_data(storage):
    if SETTINGS.skip_data or storage.device.type == "meta":
        return bytes(storage.nbytes())
    return _core.storage_bytes(storage)


def _write_archive(writer, data, storages, byteorder_last):
    order = ("byteorder", sys.byteorder.encode())
    writer.add("data.pkl", data)
    writer.add(".format_version", b"1")
    writer.add(".storage_alignment", str(ALIGNMENT).encode())
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
