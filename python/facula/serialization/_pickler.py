"""Picklers that write this package's types under PyTorch's names.

The one in Python can write any name. C's is several times as fast, and writes only names that it
can import: what it writes of a GlobalName is a name in a module of ours that no text of a user can
contain, and which is replaced when all is written. Where something else of this package is to be
named, such as a module's class, the pickler in Python does it all.
"""

import importlib
import io
import pickle
import re
import secrets
import sys
import types
import warnings

import facula

from . import _core, _rebuild
from ._globals import torch_name
from ._legacy import source_of
from ._locations import location_tag

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


def pickler_base(pickle_module):
    """The class of pickle_module that `make_pickler` derives from."""
    base = getattr(pickle_module, "_Pickler", None) or getattr(pickle_module, "Pickler", None)
    if base is None or not issubclass(base, pickle._Pickler):
        raise NotImplementedError(
            f"save(): pickle_module {pickle_module!r} needs a Pickler that derives from "
            "pickle._Pickler"
        )
    return base


def make_pickler(base, stream, protocol, storages, legacy):
    """A pickler that writes this package's types under PyTorch's names."""

    storage_types = (facula.UntypedStorage, facula.storage.TypedStorage)

    class Pickler(base):
        dispatch = dict(base.dispatch)
        classes = set()  # of modules, whose source was written already

        def persistent_id(self, obj):
            if legacy and isinstance(obj, type):
                return self._class_id(obj)
            if not isinstance(obj, storage_types):
                return None
            pid = _storage_id(obj, storages, protocol)
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


def _storage_id(obj, storages, protocol):
    """The persistent id of a storage, which is noted in `storages`."""
    if protocol == 0:
        raise ValueError("save(): tensors and storages need a pickle_protocol of at least 1; got 0")
    storage = _core.untyped(obj)
    kind, dtype = _storage_type(obj)
    storages.check_dtype(storage, dtype)
    count = storage.nbytes() // dtype.itemsize
    return "storage", kind, storages.key(storage, dtype), location_tag(storage), count


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
    if isinstance(obj, facula.qscheme):
        return obj.__reduce__()
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


class _NeedsNames(Exception):
    """Something is to be written under a name that C's pickler would not write."""


_TOKEN = f"facula_names_{secrets.token_hex(16)}"
_PLACED = re.compile(rb"c%s\n(\w+)\n" % _TOKEN.encode())
_placeholders = types.ModuleType(_TOKEN)


def _placeholder(name):
    """The name in the module of placeholders that C's pickler finds a GlobalName under."""
    shown = f"{name.module}.{name.name}".replace(".", "_0_")
    if not hasattr(_placeholders, shown):
        setattr(_placeholders, shown, name)
        sys.modules[_TOKEN] = _placeholders
        _placed[shown.encode()] = f"c{name.module}\n{name.name}\n".encode()
    name.__module__ = _TOKEN
    return shown


_placed = {}
_OWN_REDUCTIONS = (facula.Tensor, facula.Size, facula.device)


def _fast_reduction(obj):
    kind = type(obj)
    if kind is _rebuild.GlobalName:
        return _placeholder(obj)
    if isinstance(obj, _OWN_REDUCTIONS):
        return _reduction(obj)
    module = obj.__module__ if isinstance(obj, (type, types.FunctionType)) else kind.__module__
    # A property stands there where objects tell their module, as dtypes do.
    if not isinstance(module, str) or torch_name(module).partition(".")[0] == "torch":
        raise _NeedsNames
    return NotImplemented


def fast_pickle(obj, protocol, storages, legacy):
    """The pickle of an object by C's pickler; None where only the one in Python can write it."""
    if type(protocol) is not int or not 1 <= protocol <= 3:
        return None
    storage_types = (facula.UntypedStorage, facula.storage.TypedStorage)

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj):
            if not isinstance(obj, storage_types):
                return None
            pid = _storage_id(obj, storages, protocol)
            return (*pid, None) if legacy else pid

        def reducer_override(self, obj):
            if legacy and isinstance(obj, type) and issubclass(obj, facula.nn.Module):
                raise _NeedsNames
            return _fast_reduction(obj)

    stream = io.BytesIO()
    try:
        Pickler(stream, protocol).dump(obj)
    except _NeedsNames:
        return None
    return _PLACED.sub(lambda found: _placed[found.group(1)], stream.getvalue())
