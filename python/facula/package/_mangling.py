"""Names of modules that came out of a package: `<torch_package_0>.net` for its module `net`.

So a class of a package never has the name of one that the interpreter imported from elsewhere.
"""

from __future__ import annotations

import itertools
import re

_MANGLED = re.compile(r"<torch_package_\d+>")
_numbers = itertools.count()


class PackageMangler:
    """The names of one importer's modules."""

    def __init__(self):
        self._prefix = f"<torch_package_{next(_numbers)}>"

    def mangle(self, name):
        """The full name of a module of this importer."""
        return f"{self._prefix}.{name}"

    def demangle(self, name):
        """A module's name in the package; names from elsewhere are unchanged."""
        own = self._prefix + "."
        return name[len(own) :] if name.startswith(own) else name

    def parent_name(self):
        """What stands before the names of this importer's modules."""
        return self._prefix


def is_mangled(name):
    """Whether a module's name says that it came out of a package."""
    return _MANGLED.match(name) is not None


def get_mangle_prefix(name):
    """The importer's part of a module's name; the name itself when it came from elsewhere."""
    found = _MANGLED.match(name)
    return found.group() if found else name


def demangle(name):
    """A module's name in the package that it came out of; others are unchanged."""
    found = _MANGLED.match(name)
    return name[found.end() + 1 :] if found else name


def check_not_mangled(name):
    """Raises AssertionError for the name of a module that came out of a package."""
    assert not is_mangled(name), f"{name} is a name of an imported package"
