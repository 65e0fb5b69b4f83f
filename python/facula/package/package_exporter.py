"""PackageExporter: writes objects, the source of their modules and other files as one archive."""

from __future__ import annotations

import contextlib
import linecache
import os
import platform
import sys
from collections import OrderedDict
from enum import Enum

from ..serialization import _core
from ..serialization._container import ArchiveWriter
from ..serialization._files import archive_name, opened_to_write
from ._digraph import DiGraph
from ._mangling import demangle, is_mangled
from ._mock_source import MOCK_SOURCE, STUB_SOURCE
from ._pickling import SavedStorages, named_in_pickle, package_pickle
from .find_file_dependencies import find_files_source_depends_on
from .glob_group import GlobGroup, GlobPattern
from .importer import Importer, OrderedImporter, sys_importer

__all__ = ["EmptyMatchError", "PackageExporter", "PackagingError", "PackagingErrorReason"]

_EXTENSION_SUFFIXES = (".so", ".pyd", ".dll", ".dylib")
# Under either name, this package's modules are the reader's.
_FRAMEWORK = ("torch", "facula")


class _Action(Enum):
    """What is done with a module."""

    INTERN, EXTERN, MOCK, DENY = "intern", "extern", "mock", "deny"


class PackagingErrorReason(Enum):
    """Why a module cannot go into a package."""

    IS_EXTENSION_MODULE = "Module is a C extension; only modules in Python can be packaged."
    NO_DUNDER_FILE = "Module has no __file__, so its source is unknown."
    SOURCE_FILE_NOT_FOUND = "Module has a __file__ that does not exist."
    DEPENDENCY_RESOLUTION_FAILED = "What the module imports could not be found out."
    NO_ACTION = "Module matches no pattern: extern, mock or intern it."
    DENIED = "Module was denied by a pattern."
    MOCKED_BUT_STILL_USED = "Module was mocked, but objects that are saved need it."

    def __repr__(self):
        return f"<{type(self).__name__}.{self.name}>"


class EmptyMatchError(Exception):
    """A pattern with `allow_empty=False` matched no module."""


class PackagingError(Exception):
    """Modules cannot be packaged; `dependency_graph` has an `error` at each.

    Args:
        dependency_graph (DiGraph): what the exporter found out.
        debug (bool): show how each module came in.
    """

    def __init__(self, dependency_graph: DiGraph, debug=False):
        broken = {}
        for name, attributes in dependency_graph.nodes.items():
            if attributes.get("error") is not None:
                broken.setdefault(attributes["error"], []).append(name)
        lines = [""]
        for reason, names in broken.items():
            lines.append(f"* {reason.value}")
            for name in names:
                lines += self._about(dependency_graph, name, debug)
        if not debug:
            lines.append("\nPackageExporter(..., debug=True) shows how these modules came in.")
        super().__init__("\n".join(lines) + "\n")
        self.dependency_graph = dependency_graph

    @staticmethod
    def _about(graph, name, debug):
        yield f"    {name}"
        context = graph.nodes[name].get("error_context")
        if context:
            yield f"      Context: {context}"
        if debug:
            yield f"      A path to {name}: {' -> '.join(graph.first_path(name))}"


class _Pattern:
    def __init__(self, action, include, exclude, allow_empty):
        self.action, self.group = action, GlobGroup(include, exclude=exclude)
        self.allow_empty, self.was_matched = allow_empty, False


class PackageExporter:
    """Writes a package, which PackageImporter reads in another process, or PyTorch's does.

    What is saved may need modules. For each, the first pattern that matches its name says what
    happens: `intern` writes its source, `extern` leaves it to the reader's environment, `mock`
    writes a module that can be imported and not used, `deny` is an error. Modules of the standard
    library and of this framework are extern without saying. A file is written in whole or not.

    Args:
        f: a path, or a file object of bytes.
        importer (Importer or list of them): where the modules of objects are looked up.
        debug (bool): errors show how modules came in.

    Raises:
        PackagingError: at the end, when modules cannot be packaged.
        EmptyMatchError: at the end, when a pattern with `allow_empty=False` matched nothing.

    Example:
        >>> with facula.package.PackageExporter("model.pt") as exporter:
        ...     exporter.intern("my_models.**")
        ...     exporter.save_pickle("model", "weights.pkl", {"w": facula.ones(2)})
        >>> importer = facula.package.PackageImporter("model.pt")
        >>> importer.load_pickle("model", "weights.pkl")
        {'w': tensor([1., 1.])}
    """

    importer: Importer

    def __init__(self, f, importer=sys_importer, debug: bool = False):
        self.debug = debug
        if isinstance(importer, Importer):
            self.importer = importer
        else:
            self.importer = OrderedImporter(*importer)
        self._closing = contextlib.ExitStack()
        write = self._closing.enter_context(opened_to_write(f))
        self._writer = ArchiveWriter(write, archive_name(f))
        self._written = set()
        self._storages, self._storages_written = SavedStorages(), 0
        self._patterns, self._hooks = [], {a: OrderedDict() for a in _Action}
        self._unique_ids = 0
        self.dependency_graph = DiGraph()

    def __enter__(self):
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        if exc_type is None:
            self.close()
            return
        self._writer = None
        self._closing.__exit__(exc_type, exc_value, traceback)

    # --- what is done with modules

    def intern(self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True):
        """Writes the source of modules whose names match.

        Args:
            include (str or list of str): patterns as in GlobGroup.
            exclude (str or list of str): patterns of names that are not meant.
            allow_empty (bool): False makes it an error that nothing matched.
        """
        self._patterns.append(_Pattern(_Action.INTERN, include, exclude, allow_empty))

    def mock(self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True):
        """Writes modules that raise NotImplementedError when used, for names that match."""
        self._patterns.append(_Pattern(_Action.MOCK, include, exclude, allow_empty))

    def extern(self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True):
        """Leaves modules whose names match to the environment of the reader."""
        self._patterns.append(_Pattern(_Action.EXTERN, include, exclude, allow_empty))

    def deny(self, include: GlobPattern, *, exclude: GlobPattern = ()):
        """Makes it an error to need modules whose names match."""
        self._patterns.append(_Pattern(_Action.DENY, include, exclude, True))

    def _register(self, action, hook):
        from ..utils.hooks import RemovableHandle

        handle = RemovableHandle(self._hooks[action])
        self._hooks[action][handle.id] = hook
        return handle

    def register_extern_hook(self, hook):
        """Calls `hook(exporter, name)` for each module left out; returns a handle to remove it."""
        return self._register(_Action.EXTERN, hook)

    def register_mock_hook(self, hook):
        """Calls `hook(exporter, name)` for each module mocked; returns a handle to remove it."""
        return self._register(_Action.MOCK, hook)

    def register_intern_hook(self, hook):
        """Calls `hook(exporter, name)` for each module written; returns a handle to remove it."""
        return self._register(_Action.INTERN, hook)

    # --- what is saved

    def save_source_file(self, module_name: str, file_or_directory: str, dependencies=True):
        """Writes a source file as a module, or a folder of them as a package.

        Args:
            module_name (str): the name of the module in the package.
            file_or_directory (str): its path.
            dependencies (bool): see to the modules that it imports.
        """
        if not os.path.isdir(file_or_directory):
            is_package = os.path.basename(file_or_directory) == "__init__.py"
            text = _source_text(file_or_directory)
            self.save_source_string(module_name, text, is_package, dependencies)
            return
        for folder, _, files in sorted(os.walk(file_or_directory)):
            below = os.path.relpath(folder, file_or_directory)
            above = module_name if below == "." else f"{module_name}.{below.replace(os.sep, '.')}"
            for file in sorted(files):
                stem, extension = os.path.splitext(file)
                if extension != ".py":
                    continue
                is_package = stem == "__init__"
                text = _source_text(os.path.join(folder, file))
                name = above if is_package else f"{above}.{stem}"
                self.save_source_string(name, text, is_package, dependencies)

    def save_source_string(
        self, module_name: str, src: str, is_package: bool = False, dependencies: bool = True
    ):
        """Writes a text as the source of a module.

        Args:
            module_name (str): the name of the module in the package.
            src (str): the source.
            is_package (bool): the module is a package, which has modules below it.
            dependencies (bool): see to the modules that it imports.
        """
        # Something may have needed it before it was there.
        self.dependency_graph.add_node(module_name, error=None, error_context=None)
        self.dependency_graph.add_node(
            module_name, source=src, is_package=is_package, provided=True, action=_Action.INTERN
        )
        if dependencies:
            self._add_imports_of(module_name, src, is_package)

    def save_module(self, module_name: str, dependencies=True):
        """Writes the source of a module, whatever the patterns say.

        Args:
            module_name (str): its name.
            dependencies (bool): see to the modules that it imports.

        Raises:
            TypeError: the name is no string.
            ModuleNotFoundError: there is no such module.
        """
        if not isinstance(module_name, str):
            raise TypeError(
                "save_module() expects a string input, such as a module's `__name__`; got "
                f"{type(module_name).__name__}"
            )
        self.importer.import_module(module_name)
        self._intern_module(module_name, dependencies)

    def save_pickle(
        self, package: str, resource: str, obj, dependencies: bool = True, pickle_protocol: int = 3
    ):
        """Writes an object.

        Args:
            package (str): the folder, as a package's name.
            resource (str): the file's name.
            obj: anything that can be pickled.
            dependencies (bool): see to the modules of its classes.
            pickle_protocol (int): 3 or 4, the version of the pickle format.

        Raises:
            PicklingError: a part of the object cannot be pickled.
            ValueError: another protocol.
        """
        if pickle_protocol not in (3, 4):
            raise ValueError(
                f"save_pickle(): pickle_protocol must be 3 or 4; got {pickle_protocol}"
            )
        data = package_pickle(self, self.importer, obj, pickle_protocol, self._storages)
        for number in range(self._storages_written, len(self._storages.all)):
            storage = _core.storage_bytes(self._storages.all[number])
            self._write(f".data/{number}.storage", storage)
        self._storages_written = len(self._storages.all)
        node = f"<{package}.{resource}>"
        self.dependency_graph.add_node(node, action=_Action.INTERN, provided=True, is_pickle=True)
        if dependencies:
            for module, names in named_in_pickle(data).items():
                self.dependency_graph.add_edge(node, module)
                self.add_dependency(module)
                self._check_not_mocked(module, list(names), package, resource)
        self._write(_path_of(package, resource), data)

    def _check_not_mocked(self, module, names, package, resource):
        if self.dependency_graph.nodes[module].get("action") is _Action.MOCK:
            self.dependency_graph.add_node(
                module,
                error=PackagingErrorReason.MOCKED_BUT_STILL_USED,
                error_context=f"`{resource}` in package `{package}` needs {names}",
            )

    def save_text(self, package: str, resource: str, text: str):
        """Writes a text file in UTF-8."""
        return self.save_binary(package, resource, text.encode("utf-8"))

    def save_binary(self, package, resource, binary: bytes):
        """Writes bytes as a file."""
        self._write(_path_of(package, resource), binary)

    def get_unique_id(self) -> str:
        """A number, as a string, that this exporter gives once."""
        self._unique_ids += 1
        return str(self._unique_ids - 1)

    # --- dependencies

    def add_dependency(self, module_name: str, dependencies=True):
        """Does with a module, which something needs, what the patterns say.

        Args:
            module_name (str): its name.
            dependencies (bool): see to the modules that it imports in turn.
        """
        graph = self.dependency_graph
        if graph.nodes.get(module_name, {}).get("provided"):
            return
        if _is_implicitly_extern(module_name):
            graph.add_node(module_name, action=_Action.EXTERN, provided=True)
            return
        pattern = next((p for p in self._patterns if p.group.matches(module_name)), None)
        if pattern is None:
            graph.add_node(module_name, **self._why_unmatched(module_name))
            return
        pattern.was_matched = True
        if pattern.action is _Action.INTERN:
            self._intern_module(module_name, dependencies)
            return
        graph.add_node(module_name, action=pattern.action, provided=True)
        if pattern.action is _Action.DENY:
            graph.add_node(module_name, error=PackagingErrorReason.DENIED)
        elif pattern.action is _Action.MOCK:
            graph.add_node(module_name, is_package=self._is_package(module_name))

    @staticmethod
    def _why_unmatched(module_name):
        found = {"error": PackagingErrorReason.NO_ACTION, "action": None}
        if module_name.partition(".")[0] in sys.stdlib_module_names:
            text = (
                f"`{module_name}` can act on the machine, so it is extern only where that is said"
            )
            found["error_context"] = text
        return found

    def _is_package(self, module_name):
        try:
            return hasattr(self.importer.import_module(module_name), "__path__")
        except ImportError:
            return True

    def _intern_module(self, module_name, dependencies):
        graph = self.dependency_graph
        graph.add_node(module_name, action=_Action.INTERN, provided=True)
        try:
            module = self.importer.import_module(module_name)
        except ModuleNotFoundError:
            # An import that the source only tries, or that fails at the reader's as it does here.
            graph.add_node(module_name, is_absent=True)
            return
        is_package = hasattr(module, "__path__")
        source = self._source_of(module)
        if source is None:
            graph.add_node(module_name, **_why_without_source(module), is_package=is_package)
            return
        graph.add_node(module_name, source=source, is_package=is_package)
        if dependencies:
            self._add_imports_of(module_name, source, is_package)

    @staticmethod
    def _source_of(module):
        loader = getattr(module, "__loader__", None)
        if is_mangled(module.__name__):
            with contextlib.suppress(ImportError, AttributeError, RuntimeError):
                return loader.get_source(demangle(module.__name__))
            return None
        file = getattr(module, "__file__", None)
        if file is None or not file.endswith(".py"):
            return None
        lines = linecache.getlines(file, module.__dict__)
        # An empty file and one that is not there both have no lines.
        return "".join(lines) if lines or os.path.exists(file) else None

    def _add_imports_of(self, module_name, source, is_package):
        package = module_name if is_package else module_name.rpartition(".")[0]
        try:
            found = find_files_source_depends_on(source, package)
        except Exception as error:
            self.dependency_graph.add_node(
                module_name,
                error=PackagingErrorReason.DEPENDENCY_RESOLUTION_FAILED,
                error_context=str(error),
            )
            return
        needed = dict.fromkeys(self._module_meant(*pair) for pair in found)
        for name in needed:
            self.dependency_graph.add_edge(module_name, name)
            self.add_dependency(name)

    def _module_meant(self, module, name):
        """`module.name` if that is a module; else what it is in."""
        if name is None:
            return module
        full = f"{module}.{name}"
        graph = self.dependency_graph
        return full if graph.nodes.get(full, {}).get("provided") or self._exists(full) else module

    def _exists(self, name):
        try:
            self.importer.import_module(name)
            return True
        except Exception:
            return False

    # --- the end

    def _write(self, path, data):
        if self._writer is None:
            raise RuntimeError("this PackageExporter is closed")
        if path in self._written or path in ("byteorder", ".data/version"):
            raise AssertionError(f"the package has a file {path!r} already")
        self._written.add(path)
        self._writer.add(path, data.encode() if isinstance(data, str) else data)

    def close(self):
        """Writes what is left; called at the end of a `with` block.

        Raises:
            PackagingError: modules cannot be packaged.
            EmptyMatchError: a pattern with `allow_empty=False` matched nothing.
        """
        with self._closing:
            try:
                self._finish()
            finally:
                self._writer = None

    def _finish(self):
        self._check()
        extern = []
        for name, attributes in list(self.dependency_graph.nodes.items()):
            self._write_module(name, attributes, extern)
        self._write(".data/extern_modules", "".join(name + "\n" for name in extern).encode())
        self._write(".data/python_version", platform.python_version().encode())
        self._writer.add(".data/version", b"6\n")
        self._writer.add("byteorder", sys.byteorder.encode())
        self._writer.add(".data/serialization_id", self._writer.identity().encode())
        self._writer.finish()

    def _check(self):
        for pattern in self._patterns:
            if not (pattern.allow_empty or pattern.was_matched):
                raise EmptyMatchError(
                    f"Exporter did not match any modules to {pattern.group}, which was marked as "
                    "allow_empty=False"
                )
        if any(a.get("error") is not None for a in self.dependency_graph.nodes.values()):
            raise PackagingError(self.dependency_graph, debug=self.debug)

    def _write_module(self, name, attributes, extern):
        action = attributes.get("action")
        if attributes.get("is_absent"):
            return
        for hook in list(self._hooks[action].values()) if action else ():
            hook(self, name)
        if action is _Action.EXTERN:
            extern.append(name)
        elif action is _Action.MOCK:
            if "_mock.py" not in self._written:
                self._write("_mock.py", MOCK_SOURCE.encode())
            self._write(_module_path(name, attributes["is_package"]), STUB_SOURCE.encode())
        elif action is _Action.INTERN and not attributes.get("is_pickle"):
            source = attributes["source"].encode()
            self._write(_module_path(name, attributes["is_package"]), source)

    # --- questions

    def dependency_graph_string(self) -> str:
        """What needs what, as text for Graphviz."""
        return self.dependency_graph.to_dot()

    def _named(self, action):
        return sorted(
            name
            for name, attributes in self.dependency_graph.nodes.items()
            if attributes.get("action") is action and not attributes.get("is_pickle")
        )

    def externed_modules(self) -> list:
        """Names of modules that the reader's environment is to have."""
        return self._named(_Action.EXTERN)

    def interned_modules(self) -> list:
        """Names of modules whose source is in the package."""
        return self._named(_Action.INTERN)

    def mocked_modules(self) -> list:
        """Names of modules that cannot be used."""
        return self._named(_Action.MOCK)

    def denied_modules(self) -> list:
        """Names of modules that were denied."""
        return self._named(_Action.DENY)

    def get_rdeps(self, module_name: str) -> list:
        """Names of what needs a module; [] for one that is not there."""
        if module_name not in self.dependency_graph:
            return []
        return list(self.dependency_graph.predecessors(module_name))

    def all_paths(self, src: str, dst: str) -> str:
        """How one module leads to another, as text for Graphviz."""
        return self.dependency_graph.all_paths(src, dst)


def _source_text(path):
    import tokenize

    with tokenize.open(path) as file:  # in the encoding that the file names
        return file.read()


def _path_of(package, resource):
    return f"{package.replace('.', '/')}/{resource}"


def _module_path(name, is_package):
    return name.replace(".", "/") + ("/__init__.py" if is_package else ".py")


def _is_implicitly_extern(name):
    top = name.partition(".")[0]
    return top in _FRAMEWORK or (top in sys.stdlib_module_names and top != "sys")


def _why_without_source(module):
    file = getattr(module, "__file__", None)
    if file is None:
        return {"error": PackagingErrorReason.NO_DUNDER_FILE}
    if file.endswith(_EXTENSION_SUFFIXES):
        return {"error": PackagingErrorReason.IS_EXTENSION_MODULE}
    return {"error": PackagingErrorReason.SOURCE_FILE_NOT_FOUND, "error_context": file}
