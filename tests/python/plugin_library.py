"""Libraries of tests/cpp/plugins, compiled as a user would compile one."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import facula

PACKAGE = Path(facula._C.__file__).resolve().parent
ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "tests" / "cpp" / "plugins"


def compiled(name, folder, suffix=".cpp", options=()):
    """The library `name` of the build, or compiled now against headers and library alone."""
    source = SOURCES / f"{name}{suffix}"
    built = PACKAGE.parents[1] / "plugins" / f"{name}.so"
    ready = os.environ.get("FACULA_TEST_PLUGINS")  # compiled against another build
    if ready and not options:
        return Path(ready) / f"{name}.so"
    if not options and built.exists() and built.stat().st_mtime >= source.stat().st_mtime:
        return built
    path = Path(folder) / f"{name}.so"
    is_c = suffix == ".c"
    compiler = shlex.split(os.environ.get("CC" if is_c else "CXX", "gcc" if is_c else "g++"))
    command = [
        *compiler,
        "-std=c11" if is_c else "-std=c++20",
        "-O1",
        "-fPIC",
        "-shared",
        f"-I{ROOT / 'include'}",
        *options,
        str(source),
        f"-L{PACKAGE}",
        "-lfacula",
        f"-Wl,-rpath,{PACKAGE}",
        "-o",
        str(path),
    ]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return path


def run_example(folder, *arguments, **environment):
    """What run.py in a folder of examples prints."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), **environment}
    command = [sys.executable, "run.py", *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout
