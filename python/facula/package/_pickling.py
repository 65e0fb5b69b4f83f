"""Pickles of packages: names are those that an importer gives, storages are records."""

from __future__ import annotations

import io
import pickle
import pickletools

from ..serialization import _core
from ..serialization._globals import _own_global, facula_name, torch_name
from ..serialization._load import _parse_persistent_id
from ..serialization._locations import restorer
from ..serialization._pickler import make_pickler


class SavedStorages:
    """The storages that pickles of one package refer to: each once, under a number."""

    def __init__(self):
        self.all = []
        self._number_of = {}

    def key(self, storage, dtype):
        """The number of an untyped storage."""
        number = self._number_of.setdefault(_core.storage_identity(storage), len(self.all))
        if number == len(self.all):
            self.all.append(storage)
        return number

    def check_dtype(self, storage, dtype):
        """A package may have one memory as two dtypes."""


def package_pickle(exporter, importer, obj, protocol, storages):
    """The pickle of an object.

    Args:
        exporter: what `__reduce_package__` of objects is called with.
        importer (Importer): gives the names of classes and functions.
        obj: the object.
        protocol (int): version of the pickle format.
        storages (SavedStorages): is told of storages.
    """

    class Base(pickle._Pickler):
        def save_global(self, obj, name=None):
            try:
                self._write_name(obj, *importer.get_name(obj, name))
            except Exception as error:
                raise pickle.PicklingError(f"Can't pickle {obj}: {error}") from error

    stream = io.BytesIO()
    pickler = make_pickler(Base, stream, protocol, storages, legacy=False)
    storage_id = pickler.persistent_id

    def persistent_id(obj):
        if hasattr(type(obj), "__reduce_package__"):
            return "reduce_package", id(obj), *obj.__reduce_package__(exporter)
        return storage_id(obj)

    pickler.persistent_id = persistent_id
    try:
        pickler.dump(obj)
    except AttributeError as error:
        if not str(error).startswith("Can't pickle local object"):
            raise
        raise pickle.PicklingError(str(error)) from error
    return stream.getvalue()


def named_in_pickle(data):
    """Modules and the names in them that a pickle of ours refers to: dict of dicts."""
    found, memo, words = {}, {}, [None, None]
    for op, argument, _ in pickletools.genops(data):
        if op.name == "GLOBAL":
            module, name = argument.split(" ", 1)
            found.setdefault(module, {})[name] = True
        elif op.name == "STACK_GLOBAL":
            found.setdefault(words[0], {})[words[1]] = True
        elif op.name == "MEMOIZE":
            memo[len(memo)] = words[1]
        elif op.name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = words[1]
        elif op.name in ("BINGET", "LONG_BINGET"):
            words = [words[1], memo.get(argument)]
        elif isinstance(argument, str):
            words = [words[1], argument]
    return found


def package_unpickle(importer, data, reader, map_location, reduced):
    """The object of a pickle.

    Args:
        importer (PackageImporter): where names are looked up.
        data (bytes): the pickle.
        reader: has the records of storages.
        map_location: as for `load`.
        reduced (dict): objects that their own functions rebuilt, by their numbers.
    """
    restore, loaded = restorer(map_location), {}

    class Unpickler(pickle._Unpickler):
        def find_class(self, module, name):
            full = torch_name(f"{module}.{name}")
            found = _own_global(full)
            if found is not None:
                return found
            if torch_name(module).partition(".")[0] == "torch":
                name = facula_name(name)
            found = importer.import_module(module)
            for part in name.split("."):
                found = getattr(found, part)
            return found

        def persistent_load(self, pid):
            if isinstance(pid, tuple) and pid and pid[0] == "reduce_package":
                _, number, function, arguments = pid
                if number not in reduced:
                    reduced[number] = function(importer, *arguments)
                return reduced[number]
            if isinstance(pid, tuple) and len(pid) > 2 and isinstance(pid[2], int):
                pid = (*pid[:2], str(pid[2]), *pid[3:])
            dtype, key, location, _ = _parse_persistent_id(pid)
            if key not in loaded:
                storage = reader.read_storage(f".data/{key}.storage")
                loaded[key] = restore(storage, location)
            return _core.typed(loaded[key], dtype)

    return Unpickler(io.BytesIO(data)).load()
