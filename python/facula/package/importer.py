"""Where the modules of objects are looked up: the interpreter, packages, or several in order."""

from __future__ import annotations

import importlib
import pickle
from abc import ABC, abstractmethod

from ._mangling import demangle, get_mangle_prefix, is_mangled

__all__ = ["Importer", "ObjMismatchError", "ObjNotFoundError", "OrderedImporter"]


class ObjNotFoundError(Exception):
    """An object is not to be found under the name it says it has."""


class ObjMismatchError(Exception):
    """Another object is found under the name that an object says it has."""


def _origin(module_name):
    is_package = is_mangled(module_name)
    return get_mangle_prefix(module_name) if is_package else "the current Python environment"


def _importer_of(module_name):
    is_package = is_mangled(module_name)
    return f"the importer for {get_mangle_prefix(module_name)}" if is_package else "'sys_importer'"


def _attribute(module, name):
    found = module
    for part in name.split("."):
        if part == "<locals>":
            raise AttributeError(name)
        found = getattr(found, part)
    return found


class Importer(ABC):
    """Looks modules up, and names objects so that they can be looked up again."""

    modules: dict

    @abstractmethod
    def import_module(self, module_name: str):
        """The module of this name; ModuleNotFoundError where there is none."""

    def get_name(self, obj, name: str | None = None) -> tuple[str, str]:
        """Module and name under which `import_module` leads to an object.

        Args:
            obj: a class, function or module's constant.
            name (str): its name in the module, where it does not know it.

        Raises:
            ObjNotFoundError: there is nothing of the name.
            ObjMismatchError: there is something else.
        """
        if name is None:
            name = getattr(obj, "__qualname__", None) or obj.__name__
        full = self.whichmodule(obj, name)
        module_name = demangle(full)
        try:
            module = self.import_module(module_name)
            found = _attribute(module, name)
        except (ImportError, KeyError, AttributeError):
            raise ObjNotFoundError(f"{obj} was not found as {module_name}.{name}") from None
        if found is obj:
            return module_name, name
        other = getattr(found, "__module__", None) or module.__name__
        raise ObjMismatchError(
            f"{obj} of '{full}' comes from {_origin(full)}, but importing '{other}' takes it from "
            f"{_origin(other)}: list {_importer_of(full)} before {_importer_of(other)} in the "
            "importer of this PackageExporter"
        )

    def whichmodule(self, obj, name: str) -> str:
        """The name of the module that an object belongs to; "__main__" where none is known."""
        module_name = getattr(obj, "__module__", None)
        if module_name is not None:
            return module_name
        for module_name, module in list(self.modules.items()):
            if module_name in ("__main__", "__mp_main__") or module is None:
                continue
            try:
                if _attribute(module, name) is obj:
                    return module_name
            except AttributeError:
                pass
        return "__main__"


class _SysImporter(Importer):
    """The interpreter's own modules."""

    def import_module(self, module_name: str):
        return importlib.import_module(module_name)

    def whichmodule(self, obj, name: str) -> str:
        return pickle.whichmodule(obj, name)


sys_importer = _SysImporter()


class OrderedImporter(Importer):
    """Asks several importers, the first ones first.

    Args:
        args (Importer): those asked.

    Raises:
        TypeError: one is no importer.
    """

    def __init__(self, *args):
        for importer in args:
            if not isinstance(importer, Importer):
                raise TypeError(
                    f"OrderedImporter(): expected Importer objects; got {type(importer).__name__}. "
                    "An Importer that calls importlib.import_module is `sys_importer`"
                )
        self._importers = list(args)

    def _is_torchpackage_dummy(self, module):
        # A folder of a package, without a source of its own.
        is_package = getattr(module, "__torch_package__", False)
        return is_package and hasattr(module, "__path__") and module.__file__ is None

    def get_name(self, obj, name: str | None = None) -> tuple[str, str]:
        """As Importer.get_name: the answer of the first importer that has one."""
        for importer in self._importers:
            try:
                return importer.get_name(obj, name)
            except (ObjNotFoundError, ObjMismatchError) as error:
                last = error
        if not self._importers:
            raise ObjNotFoundError(f"{obj} was not found: there is no importer to ask")
        raise last

    def import_module(self, module_name: str):
        """The module as the first importer has it that has one with a source."""
        error = dummy = None
        for importer in self._importers:
            if not hasattr(importer, "import_module"):
                continue
            try:
                module = importer.import_module(module_name)
            except ModuleNotFoundError as raised:
                error = raised
                continue
            if not self._is_torchpackage_dummy(module):
                return module
            dummy = dummy or module
        if dummy is not None:
            return dummy
        raise error or ModuleNotFoundError(module_name)

    def whichmodule(self, obj, name: str) -> str:
        """As Importer.whichmodule: the answer of the first importer that knows one."""
        for importer in self._importers:
            module_name = importer.whichmodule(obj, name)
            if module_name != "__main__":
                return module_name
        return "__main__"
