"""Building libraries that add operators, devices and layouts: `facula/c.h` and its C++ wrapper."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import facula

__all__ = ["include_paths", "library_paths", "compile_flags", "load", "CppExtension"]


def _package():
    return Path(facula._C.__file__).resolve().parent


def include_paths(device_type="cpu"):
    """The folders of facula's headers, for a compiler's `-I`; `facula/c.h` is in them.

    Args:
        device_type (str): "cpu".

    Raises:
        NotImplementedError: another device type.
        FileNotFoundError: this installation has no headers.
    """
    if device_type != "cpu":
        raise NotImplementedError(f"include_paths(): only 'cpu' is supported; got {device_type!r}")
    folder = _package() / "include"
    if not (folder / "facula" / "c.h").exists():
        raise FileNotFoundError(f"this installation of facula has no headers in {folder}")
    return [str(folder)]


def library_paths(device_type="cpu"):
    """The folders of libfacula, for a linker's `-L` and the library's run path.

    Args:
        device_type (str): "cpu".

    Raises:
        NotImplementedError: another device type.
    """
    if device_type != "cpu":
        raise NotImplementedError(f"library_paths(): only 'cpu' is supported; got {device_type!r}")
    return [str(_package())]


def compile_flags():
    """What a compiler is given beside sources and output, as a list of str.

    Example:
        >>> facula.utils.cpp_extension.compile_flags()[0]
        '-std=c++20'
    """
    flags = ["-std=c++20", "-fPIC", "-shared"]
    flags += [f"-I{folder}" for folder in include_paths()]
    for folder in library_paths():
        flags += [f"-L{folder}", f"-Wl,-rpath,{folder}"]
    return flags


def _is_current(made, sources):
    if not made.exists():
        return False
    return all(made.stat().st_mtime >= Path(source).stat().st_mtime for source in sources)


def load(
    name,
    sources,
    extra_cflags=None,
    extra_ldflags=None,
    extra_include_paths=None,
    build_directory=None,
    verbose=False,
    is_python_module=False,
):
    """Compile sources to a library, unless that is newer than they are, and load it.

    Args:
        name (str): of the library.
        sources: one path of a C++ file, or several.
        extra_cflags, extra_ldflags, extra_include_paths (list): further options.
        build_directory (str): where the library goes; else a folder in the user's cache.
        verbose (bool): whether the command is printed.
        is_python_module (bool): only False: what is built registers operators.

    Returns:
        str: the path of the library.

    Raises:
        RuntimeError: the compiler failed; its output is in the text.
        NotImplementedError: `is_python_module`.

    Example:
        >>> facula.utils.cpp_extension.load("mine", "mine.cpp")  # doctest: +SKIP
        >>> facula.ops.mine.twice(facula.ones(2))  # doctest: +SKIP
        tensor([2., 2.])
    """
    if is_python_module:
        raise NotImplementedError(
            "load(): modules for Python are not built; is_python_module=False"
        )
    sources = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "facula_extensions"
    folder = Path(build_directory or cache / name)
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"{name}.so"
    if not _is_current(made, sources):
        command = [*shlex.split(os.environ.get("CXX", "g++")), "-O2", *compile_flags()]
        command += [f"-I{path}" for path in extra_include_paths or ()]
        command += [*(extra_cflags or ()), *map(str, sources), "-lfacula"]
        command += [*(extra_ldflags or ()), "-o", str(made)]
        if verbose:
            print(shlex.join(command))
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"load(): the compiler failed\n{shlex.join(command)}\n{done.stderr}")
    facula.ops.load_library(made)
    return str(made)


def CppExtension(name, sources, *args, **kwargs):
    """A setuptools Extension with facula's headers and library; takes what that one takes."""
    import setuptools

    for key, more in (
        ("include_dirs", include_paths()),
        ("library_dirs", library_paths()),
        ("runtime_library_dirs", library_paths()),
        ("libraries", ["facula"]),
        ("extra_compile_args", ["-std=c++20"]),
    ):
        kwargs[key] = [*kwargs.get(key, ()), *more]
    kwargs.setdefault("language", "c++")
    return setuptools.Extension(name, sources, *args, **kwargs)


if __name__ == "__main__":
    print(shlex.join(compile_flags()))
