"""Whether an object came out of a package."""

from types import ModuleType

from .._mangling import is_mangled


def is_from_package(obj) -> bool:
    """Whether a module, or an object's class, was loaded by a PackageImporter."""
    return is_mangled(obj.__name__ if isinstance(obj, ModuleType) else type(obj).__module__)
