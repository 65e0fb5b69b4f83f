"""Lets `import torch` mean facula: loads the package's modules under PyTorch's name.

It is imported at a process's start, by `sitecustomize.py` beside it or by the `.pth` file of an
installed facula, and must stay small.
"""

import os
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader

HOME = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(HOME)
SWITCH = "FACULA_AS_TORCH"


def is_wanted():
    """Whether the environment asks for facula under the name torch."""
    return os.environ.get(SWITCH, "0") not in ("", "0")


def _missing(package, name):
    return import_module("torch._missing").attribute(package, name)


class _Loader(SourceFileLoader):
    """Loads a module of facula as `torch....`; afterwards it has its other name, too."""

    def exec_module(self, module):
        super().exec_module(module)
        name = module.__spec__.name
        module = sys.modules.get(name, module)
        sys.modules.setdefault(_facula_name(name), module)
        if "__getattr__" not in getattr(module, "__dict__", {"__getattr__": None}):
            module.__getattr__ = lambda missing: _raise(_missing(name, missing))


def _raise(error):
    raise error


class _OtherName:
    """The loader of `facula....`: gives the module `torch....` itself."""

    def __init__(self, real):
        self._real = real

    def create_module(self, spec):
        module = import_module(self._real)
        self._spec = module.__spec__
        return module

    def exec_module(self, module):
        # The import system has just put the spec of the other name there.
        module.__spec__ = self._spec

    def get_code(self, name):
        """The code object; `python -m facula` asks for it."""
        loader = _spec_of(self._real).loader
        return loader.get_code(loader.name)


def _facula_name(name):
    return "facula" + name.removeprefix("torch")


def _spec_of(name, path=None):
    """The spec of `torch` or `torch....`, or None."""
    if name == "torch":
        spec = ModuleSpec(name, None, origin=os.path.join(PACKAGE, "__init__.py"), is_package=True)
        spec.submodule_search_locations = [PACKAGE]
        spec.has_location = True
        spec.loader = _Loader(name, spec.origin)
        return spec
    loaded = sys.modules.get(name)
    if loaded is not None and path is None:
        return getattr(loaded, "__spec__", None) or ModuleSpec(name, None)
    parent = import_module(name.rpartition(".")[0])
    spec = PathFinder.find_spec(name, getattr(parent, "__path__", []))
    if spec and type(spec.loader) is SourceFileLoader:
        spec.loader = _Loader(spec.loader.name, spec.loader.path)
    return spec


class Finder:
    """Finds torch in facula's folder, and `facula....` as the same modules."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        top = name.partition(".")[0]
        if top == "torch":
            return _spec_of(name, path or ())
        if top != "facula":
            return None
        real_name = "torch" + name.removeprefix("facula")
        real = _spec_of(real_name)
        if real is None:
            return None
        spec = ModuleSpec(name, _OtherName(real_name), origin=real.origin)
        spec.submodule_search_locations = real.submodule_search_locations
        return spec


def install():
    """From now on `import torch` in this process means facula."""
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)
    if HOME not in sys.path:
        sys.path.insert(0, HOME)  # for the metadata of "torch"


def environment(environ):
    """A copy of an environment in which a Python process and its children call facula torch."""
    paths = [HOME, *filter(None, environ.get("PYTHONPATH", "").split(os.pathsep))]
    joined = os.pathsep.join(dict.fromkeys(paths))
    return {**environ, SWITCH: "1", "PYTHONPATH": joined}
