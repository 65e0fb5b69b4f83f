"""Packages: objects, their modules' source and other files in one archive; loaded when used."""

from __future__ import annotations

from facula import _missing

_NAMES = {
    "analyze.is_from_package": "is_from_package",
    "file_structure_representation": "Directory",
    "glob_group": "GlobGroup",
    "importer": "Importer ObjMismatchError ObjNotFoundError OrderedImporter sys_importer",
    "package_exporter": "EmptyMatchError PackageExporter PackagingError",
    "package_importer": "PackageImporter",
}
_FILE_OF = {name: file for file, names in _NAMES.items() for name in names.split()}
_MODULES = {"analyze", "find_file_dependencies", *_NAMES} - {"analyze.is_from_package"}
__all__ = sorted(_FILE_OF)


def __getattr__(name):
    from importlib import import_module

    if name in _FILE_OF:
        value = getattr(import_module(f"{__name__}.{_FILE_OF[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise _missing.attribute(__name__, name)


def __dir__():
    return sorted({*globals(), *_FILE_OF, *_MODULES})
