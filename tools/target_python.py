"""Debian's Python for another processor, unpacked below build/ and run by user-mode emulation.

    python3 tools/target_python.py aarch64

Nothing is installed: the system's own packages and apt's lists stay as they are.
"""

import argparse
import shutil
from pathlib import Path

from console import BUILD, ROOT, Failure, run_logged, run_main, say, shown

DEBIAN = {"aarch64": "arm64"}  # Debian's names of processors
PYTHON = "python3.11"  # of Debian 12, whose compiler for the target has its libraries, too
PACKAGES = [
    f"{PYTHON}-minimal",
    f"lib{PYTHON}-minimal",
    f"lib{PYTHON}-stdlib",
    f"lib{PYTHON}",
    f"lib{PYTHON}-dev",
    *("libc6", "libgcc-s1", "libstdc++6", "libexpat1", "zlib1g", "libssl3", "libffi8"),
    *("libbz2-1.0", "liblzma5", "libsqlite3-0", "libuuid1"),
    *("python3-numpy", "libblas3", "liblapack3", "libgfortran5"),
]
# Libraries of which Debian offers several: installing one would make these links.
CHOSEN = {"libblas.so.3": "blas/libblas.so.3", "liblapack.so.3": "lapack/liblapack.so.3"}
# What tests import that is Python alone, from this checkout's environment.
PURE = [
    *("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "py.py"),
    *("hypothesis", "sortedcontainers"),
]


def target_root(processor):
    """The folder that holds the target's Python and libraries, as its / would."""
    return BUILD / f"{processor}-root"


def emulator(processor):
    """The command that runs a program of the target on this machine."""
    root = target_root(processor)
    libraries = root if root.exists() else Path(f"/usr/{processor}-linux-gnu")
    return [f"qemu-{processor}-static", "-L", str(libraries)]


def python_command(processor):
    """The command that runs the target's Python."""
    root = target_root(processor)
    return [*emulator(processor), str(root / "usr" / "bin" / PYTHON)]


def include_folder(processor):
    """Where the target's Python.h is."""
    return target_root(processor) / "usr" / "include" / PYTHON


def pure_packages(processor):
    """A folder with what the tests import besides the package, for PYTHONPATH."""
    folder = target_root(processor) / "tests"
    folder.mkdir(exist_ok=True)
    site = next((ROOT / ".venv" / "lib").glob("python3.*")) / "site-packages"
    for name in PURE:
        link = folder / name
        if not link.is_symlink() and (site / name).exists():
            link.symlink_to(site / name)
    return folder


def apt_options(processor, folder):
    """apt's options for a processor that the system does not have, with lists of its own."""
    settings = [
        f"APT::Architecture={DEBIAN[processor]}",
        f"APT::Architectures={DEBIAN[processor]}",
        f"Dir::State::lists={folder}",
        "Dir::State::status=/dev/null",
        "Dir::Cache::pkgcache=",
        "Dir::Cache::srcpkgcache=",
        "APT::Sandbox::User=root",
    ]
    return [word for setting in settings for word in ("-o", setting)]


def unpack(processor):
    """Downloads and unpacks the packages, unless that was done."""
    root = target_root(processor)
    if (root / "usr" / "bin" / PYTHON).exists():
        return
    if not shutil.which("apt-get"):
        raise Failure("the target's Python comes from Debian's packages: apt-get was not found")
    say(f"unpacking Debian's {PYTHON} for {processor} into {shown(root)}")
    debs, lists = root / "debs", root / "lists"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    debs.mkdir(exist_ok=True)
    log = BUILD / "logs" / f"{processor}-root.log"
    apt = ["apt-get", "-q", *apt_options(processor, lists)]
    run_logged([*apt, "update"], log, "apt-get update")
    command = f"cd {debs} && {' '.join(apt)} download {' '.join(PACKAGES)}"
    run_logged(["sh", "-c", command], log, "apt-get download")
    for package in sorted(debs.glob("*.deb")):
        run_logged(["dpkg", "-x", package, root], log, f"unpacking {package.name}")
    for name, library in CHOSEN.items():
        (root / "usr" / "lib" / f"{processor}-linux-gnu" / name).symlink_to(library)
    shutil.rmtree(debs)
    shutil.rmtree(lists)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("processor", choices=list(DEBIAN))
    unpack(parser.parse_args().processor)
    return 0


if __name__ == "__main__":
    run_main(main)
