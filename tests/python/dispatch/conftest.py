"""The toy device: a plug-in in a library of its own, opened at run time (tests/cpp/plugins)."""

import ctypes
import os
import shlex
import subprocess
from pathlib import Path

import facula
import pytest

PACKAGE = Path(facula._C.__file__).resolve().parent
ROOT = Path(__file__).resolve().parents[3]
PLUGINS = ROOT / "tests" / "cpp" / "plugins"
COUNTS = ("toy_events_alive", "toy_native_calls", "toy_fallback_calls")


def _compiled(folder, name, sources):
    """The plug-in, built against headers and library as a user would build one."""
    path = folder / f"{name}.so"
    compiler = shlex.split(os.environ.get("CXX", "g++"))
    files = [str(source) for source in sources if source.suffix == ".cpp"]
    folders = [f"-I{ROOT / 'src'}", f"-I{ROOT / 'include'}"]
    libraries = [f"-L{PACKAGE}", "-lfacula", f"-Wl,-rpath,{PACKAGE}"]
    options = ["-std=gnu++20", "-O1", "-fPIC", "-shared", "-pthread"]
    command = [*compiler, *options, *folders, *files, *libraries, "-o", str(path)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return path


def library_path(tmp_path_factory, name="toy_device"):
    """The file of the library; built here where the build has none or an older one."""
    sources = sorted((PLUGINS / name).glob("*"))
    built = PACKAGE.parents[1] / "plugins" / f"{name}.so"
    newest = max(source.stat().st_mtime for source in sources)
    if built.exists() and built.stat().st_mtime >= newest:
        return built
    return _compiled(tmp_path_factory.mktemp("toy"), name, sources)


@pytest.fixture(scope="session")
def toy_path(tmp_path_factory):
    return library_path(tmp_path_factory)


def opened(path):
    """The library; opening it registers the device."""
    library = ctypes.CDLL(str(path))
    for name in COUNTS:
        getattr(library, name).restype = ctypes.c_int64
    library.toy_bytes_in_use.restype = ctypes.c_int64
    library.toy_use_fallback.argtypes = [ctypes.c_bool]
    library.toy_hold.argtypes = [ctypes.c_int, ctypes.c_void_p]
    return library


@pytest.fixture(scope="session")
def _toy_library(toy_path):
    return opened(toy_path)


@pytest.fixture
def toy(_toy_library):
    """The library; afterwards nothing is held back, and work is as late as at the start."""
    yield _toy_library
    _toy_library.toy_let_go()
    _toy_library.toy_set_delay(300)
    facula.accelerator.set_device_index(0)
    for index in range(2):
        try:
            facula.accelerator.synchronize(index)
        except facula.AcceleratorError:
            pass
