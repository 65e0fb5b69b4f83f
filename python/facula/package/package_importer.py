"""PackageImporter: objects, modules and files of a package."""

from __future__ import annotations

import builtins
import importlib
import importlib.machinery
import importlib.util
import io
import linecache
import threading
import types
from collections.abc import Callable

from ..serialization._globals import facula_name
from ._archive import opened_archive
from ._mangling import PackageMangler, demangle
from ._pickling import package_unpickle
from .file_structure_representation import Directory, _create_directory_from_file_list
from .glob_group import GlobPattern
from .importer import Importer

__all__ = ["PackageImporter"]

# Names of old, under which pickles of arrays have their classes.
_ALWAYS_EXTERN = ("builtins", "numpy", "numpy.core", "numpy.core._multiarray_umath", "numpy._core")


class PackageImporter(Importer):
    """Reads a package. Modules in it are its own: they are not in `sys.modules`.

    A package runs code: read none that you do not trust. Where one that PyTorch wrote imports
    `torch`, it gets this framework.

    Args:
        file_or_buffer: a path, a folder that an archive was unpacked into, or a file object.
        module_allowed (callable): says of the name of each extern module whether it may be used.

    Raises:
        ImportError: an extern module is not allowed.
        RuntimeError: there is no such file, or it is damaged.

    Example:
        >>> with facula.package.PackageExporter("constants.pt") as exporter:
        ...     exporter.save_source_string("constants", "answer = 42")
        >>> facula.package.PackageImporter("constants.pt").import_module("constants").answer
        42
    """

    modules: dict[str, types.ModuleType]

    def __init__(
        self,
        file_or_buffer,
        module_allowed: Callable[[str], bool] = lambda module_name: True,
    ):
        self.zip_reader, self.filename = opened_archive(file_or_buffer)
        self._mangler = PackageMangler()
        self.extern_modules = self._read_extern()
        for name in self.extern_modules:
            if not module_allowed(name):
                raise ImportError(
                    f"package '{self.filename}' needs the external module '{name}' but that module "
                    "has been disallowed"
                )
        self._records = dict.fromkeys(self.zip_reader.names())
        self._folders = {f for name in self._records for f in _folders_of(name)}
        self._folders |= {f for name in self.extern_modules for f in _folders_of(_path(name))}
        self.modules = {"torch_package_importer": self}
        self._reduced: dict = {}
        self._lock = threading.RLock()
        self.patched_builtins = dict(builtins.__dict__)
        self.patched_builtins["__import__"] = self.__import__

    # --- files

    def load_binary(self, package: str, resource: str) -> bytes:
        """The bytes of a file.

        Args:
            package (str): the folder, as a package's name.
            resource (str): the file's name.

        Raises:
            RuntimeError: there is no such file.
        """
        return bytes(self.zip_reader.read(self._zipfile_path(package, resource)))

    def load_text(
        self, package: str, resource: str, encoding: str = "utf-8", errors: str = "strict"
    ) -> str:
        """The text of a file; `encoding` and `errors` as for bytes.decode."""
        return self.load_binary(package, resource).decode(encoding, errors)

    def load_pickle(self, package: str, resource: str, map_location=None):
        """The object that `PackageExporter.save_pickle` wrote.

        Args:
            package (str): the folder, as a package's name.
            resource (str): the file's name.
            map_location: as for `facula.load`.
        """
        data = bytes(self.zip_reader.read(self._zipfile_path(package, resource)))
        with self._lock:
            return package_unpickle(self, data, self.zip_reader, map_location, self._reduced)

    def _zipfile_path(self, package, resource):
        self.import_module(package)
        return f"{_path(package)}/{resource}"

    def id(self):
        """What stands before the names of this importer's modules."""
        return self._mangler.parent_name()

    def file_structure(
        self, *, include: GlobPattern = "**", exclude: GlobPattern = ()
    ) -> Directory:
        """The tree of files.

        Args:
            include (str or list of str): patterns of paths, with `/` between segments.
            exclude (str or list of str): patterns of paths that are left out.
        """
        names = list(self._records)
        return _create_directory_from_file_list(self.filename, names, include, exclude)

    def python_version(self):
        """The version of Python that wrote the package; None when it does not say."""
        name = ".data/python_version"
        has = self.zip_reader.has(name)
        return bytes(self.zip_reader.read(name)).decode().strip() if has else None

    def _read_extern(self):
        text = bytes(self.zip_reader.read(".data/extern_modules")).decode()
        return [line for line in text.splitlines() if line]

    def get_resource_reader(self, fullname):
        """A reader for `importlib.resources`; None when `fullname` is no package here."""
        name = demangle(fullname)
        return _ResourceReader(self, name) if _path(name) in self._folders else None

    def get_source(self, module_name) -> str:
        """The source of a module in the package.

        Raises:
            ModuleNotFoundError: there is none of this name.
        """
        return bytes(self.zip_reader.read(self._source_path(demangle(module_name)))).decode()

    def _source_path(self, name):
        for path in (f"{_path(name)}.py", f"{_path(name)}/__init__.py"):
            if path in self._records:
                return path
        raise self._not_found(name)

    # --- modules

    def import_module(self, name: str, package=None):
        """A module of the package, or one that it leaves to the environment.

        Args:
            name (str): full name; a relative one with the dots before it.
            package (str): where a relative name starts from.

        Raises:
            ModuleNotFoundError: it is neither in the package nor among the extern modules.
        """
        if package is not None and name.startswith("."):
            name = importlib.util.resolve_name(name, package)
        return self._find_and_load(name)

    def _not_found(self, name):
        return ModuleNotFoundError(
            f'No module named "{name}" in self-contained archive "{self.filename}" and the module '
            f"is also not in the list of allowed external modules: {self.extern_modules}",
            name=name,
        )

    def _is_extern(self, name):
        return any(name == e or name.startswith(e + ".") for e in self.extern_modules)

    def _find_and_load(self, name):
        with self._lock:
            found = self.modules.get(name)
            if found is not None:
                return found
            parent, _, last = name.rpartition(".")
            above = self._find_and_load(parent) if parent else None
            # The parent may have imported it.
            module = self.modules.get(name) or self._load(name)
            if above is not None and getattr(above, "__torch_package__", False):
                setattr(above, last, module)
            return module

    def _load(self, name):
        path = _path(name)
        if f"{path}.py" in self._records:
            return self._run(name, f"{path}.py", is_package=False)
        if f"{path}/__init__.py" in self._records:
            return self._run(name, f"{path}/__init__.py", is_package=True)
        is_folder = path in self._folders
        if self._is_extern(name) or (name in _ALWAYS_EXTERN and not is_folder):
            self.modules[name] = module = importlib.import_module(facula_name(name))
            return module
        if is_folder:
            return self._run(name, None, is_package=True)
        raise self._not_found(name)

    def _run(self, name, path, is_package):
        mangled = self._mangler.mangle(name)
        module = types.ModuleType(mangled)
        shown = None if path is None else self._mangler.mangle(path)
        spec = importlib.machinery.ModuleSpec(
            name, self, origin="<package_importer>", is_package=is_package
        )
        module.__dict__.update(
            __package__=name if is_package else name.rpartition(".")[0],
            __loader__=self,
            __spec__=spec,
            __file__=shown,
            __cached__=None,
            __builtins__=self.patched_builtins,
            __torch_package__=True,
        )
        if is_package:
            module.__path__ = []
        self.modules[name] = module
        if path is None:
            return module
        try:
            source = bytes(self.zip_reader.read(path)).decode()
            # Tracebacks and inspect find the lines here.
            linecache.cache[shown] = (len(source), None, source.splitlines(True), shown)
            exec(compile(source, shown, "exec", dont_inherit=True), module.__dict__)
        except BaseException:
            self.modules.pop(name, None)
            raise
        return self.modules[name]

    def __import__(self, name, globals=None, locals=None, fromlist=(), level=0):
        """What `import` in the package's modules does."""
        full = name
        if level:
            package = (globals or {}).get("__package__") or ""
            full = importlib.util.resolve_name("." * level + name, package)
        module = self._find_and_load(full)
        if not fromlist:
            return self._find_and_load(full.partition(".")[0])
        if hasattr(module, "__path__"):
            self._load_named(module, full, fromlist)
        return module

    def _load_named(self, module, full, fromlist):
        """Loads the modules among the names of `from full import ...`."""
        names = list(fromlist)
        if "*" in names:
            names = list(getattr(module, "__all__", ()))
        for name in names:
            if hasattr(module, name):
                continue
            try:
                self._find_and_load(f"{full}.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"{full}.{name}" and error.name != facula_name(f"{full}.{name}"):
                    raise


class _ResourceReader:
    """What `importlib.resources` asks for the files beside a package's modules."""

    def __init__(self, importer, fullname):
        self.importer, self.fullname = importer, fullname

    def open_resource(self, resource):
        """A file object of bytes; FileNotFoundError when there is no such file."""
        if not self.is_resource(resource):
            raise FileNotFoundError(f"{resource} in {self.fullname}")
        return io.BytesIO(self.importer.load_binary(self.fullname, resource))

    def resource_path(self, resource):
        """A package in an archive has no paths: always FileNotFoundError."""
        raise FileNotFoundError(resource)

    def is_resource(self, name):
        """Whether there is a file of this name."""
        return f"{_path(self.fullname)}/{name}" in self.importer._records

    def contents(self):
        """Names of the files and folders."""
        above = _path(self.fullname) + "/"
        names = (name[len(above) :] for name in self.importer._records if name.startswith(above))
        return iter(dict.fromkeys(name.partition("/")[0] for name in names))


def _path(name):
    return name.replace(".", "/")


def _folders_of(path):
    parts = path.split("/")[:-1]
    return {"/".join(parts[:end]) for end in range(1, len(parts) + 1)}
