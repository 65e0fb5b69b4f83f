#!/usr/bin/env python3
"""Sets up what the build and the tests need: Debian packages and virtual environments.

    python3 tools/setup.py            # system packages and .venv
    python3 tools/setup.py --oracle   # besides, the environment with PyTorch for comparisons
    python3 tools/setup.py --docs     # besides, the environment that makes the documentation
    python3 tools/setup.py --target aarch64   # besides, what builds and runs tests for aarch64

Uses the standard library only. A second run does nothing unless a requirement changed.
"""

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import target_python
from console import BUILD, ROOT, Failure, fingerprint, run_logged, run_main, say, shown

VENV = ROOT / ".venv"
OLDEST, NEWEST = (3, 10), (3, 13)
PYTHON_TAG = f"python{sys.version_info[0]}.{sys.version_info[1]}"


def is_debian_python():
    """Whether this interpreter comes from a Debian package (its headers and venv do then, too)."""
    return sys.base_prefix == "/usr"


def python_package(suffix):
    """Debian's package for a part of this interpreter; None for one built elsewhere."""
    return f"{PYTHON_TAG}-{suffix}" if is_debian_python() else None


def has_program(*names):
    """Whether any of these programs is on the path."""
    return any(shutil.which(name) for name in names)


def has_header(name):
    """Whether a C or C++ header is where Debian puts it."""
    return any((Path(folder) / name).exists() for folder in ("/usr/include", "/usr/local/include"))


def has_file(pattern):
    """Whether there is a file of this pattern below /usr."""
    return any(Path("/usr").glob(pattern))


def needs():
    """What must or may be there: (found, Debian package, what it is, required)."""
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    can_venv = importlib.util.find_spec("ensurepip") and importlib.util.find_spec("venv")
    compiler = os.environ.get("CXX", "g++").split()[-1]
    return [
        (has_program(compiler), "g++", "a C++20 compiler", True),
        (has_program("objdump"), "binutils", "binary tools", True),
        (headers.exists(), python_package("dev"), f"headers of {PYTHON_TAG}", True),
        (bool(can_venv), python_package("venv"), f"venv of {PYTHON_TAG}", True),
        (has_header("gtest/gtest.h"), "libgtest-dev", "GoogleTest", True),
        (has_header("zlib.h"), "zlib1g-dev", "zlib", True),
        (has_program("ccache"), "ccache", "compiler cache", False),
        (has_program("ld.lld"), "lld", "a fast linker", False),
        (has_header("gloo/context.h"), "libgloo-dev", "an engine of distributed", False),
        (has_file("lib/*/openmpi/include/mpi.h"), "libopenmpi-dev", "another, over OpenMPI", False),
        (has_file("include/*/mpich/mpi.h"), "libmpich-dev", "another, over MPICH", False),
        (has_program("espeak-ng"), "espeak-ng", "a synthesiser for an example", False),
    ]


def compiler_needs():
    """What the compiler of loops is made of (codegen/llvm); optional, as `needs` says it."""
    llvm = Path("/usr/lib/llvm-19")
    return [
        ((llvm / "include" / "llvm").exists(), "llvm-19-dev", "LLVM 19", False),
        ((llvm / "bin" / "clang").exists(), "clang-19", "its clang", False),
        (has_header("zstd.h"), "libzstd-dev", "a library that LLVM links", False),
    ]


def target_needs(processor):
    """What builds for another processor and runs that here, as `needs` says it."""
    compiler, gtest = f"{processor}-linux-gnu-g++", Path("/usr/src/googletest/CMakeLists.txt")
    return [
        (has_program(compiler), f"g++-{processor}-linux-gnu", "a cross compiler", True),
        (has_program(f"qemu-{processor}-static"), "qemu-user-static", "an emulator", True),
        (gtest.exists(), "googletest", "GoogleTest's sources", True),
    ]


def missing_packages(required_only):
    """Debian packages of the unmet needs; raises Failure for one that apt cannot provide."""
    packages = []
    for found, package, what, required in needs():
        if found or (required_only and not required):
            continue
        if package is None:
            raise Failure(
                f"{what} are missing, and {sys.executable} is not Debian's: install them "
                "with that Python, or choose another one with PYTHON=..."
            )
        packages.append(package)
    return packages


def install_system(compiler, target):
    """Installs missing Debian packages as root; otherwise names the command to run."""
    packages = missing_packages(required_only=False)
    more = compiler_needs() if compiler else []
    more += target_needs(target) if target else []
    packages += [package for found, package, *_ in more if not found]
    if not packages:
        return
    command = f"apt-get install -y --no-install-recommends {' '.join(packages)}"
    if os.geteuid() != 0 or not has_program("apt-get"):
        return report_missing(command)
    say(f"installing system packages: {' '.join(packages)}")
    log = BUILD / "logs" / "apt.log"
    env = {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        run_logged(["apt-get", "update", "-q"], log, "apt-get update", env)
        run_logged(command.split(), log, "apt-get install", env)
    except Failure as failure:
        if missing_packages(required_only=True):
            raise
        say(f"going on without optional packages ({failure})")


def report_missing(command):
    """Without root: stops when something required is missing, else says what would help."""
    if missing_packages(required_only=True):
        raise Failure(
            f"system packages are missing; run this once, then make again:\n    sudo {command}"
        )
    say(f"optional, makes builds faster: sudo {command}")


def make_venv(folder, requirements):
    """Makes a virtual environment with the pinned packages, unless it is there and up to date."""
    stamp = folder / ".facula-stamp"
    wanted = fingerprint(sys.base_prefix, sys.version, requirements)
    if stamp.exists() and stamp.read_text() == wanted and (folder / "bin" / "python").exists():
        return
    say(f"making {shown(folder)} with {PYTHON_TAG} and {shown(requirements)} (some minutes)")
    log = BUILD / "logs" / f"{folder.name.lstrip('.')}.log"
    base = getattr(sys, "_base_executable", sys.executable)
    run_logged([base, "-m", "venv", "--clear", folder], log, f"making {shown(folder)}")
    run_logged(
        [
            folder / "bin" / "python",
            "-m",
            "pip",
            "install",
            "--disable-pip-version-check",
            "--no-input",
            "--progress-bar",
            "off",
            "-r",
            requirements,
        ],
        log,
        f"installing packages into {shown(folder)}",
    )
    stamp.write_text(wanted)


def runtime_dependencies():
    """What pip would install along with the package, as pyproject.toml says."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = re.search(r"^dependencies = \[(.*?)\]", text, re.MULTILINE | re.DOTALL)
    return re.findall(r'"([^"]+)"', listed[1])


INSTALLED = """
import importlib.metadata, sys
for wanted in sys.argv[1:]:
    name, version = wanted.split("==")
    if importlib.metadata.version(name) != version:
        raise LookupError(wanted)
"""


def install_dependencies(python):
    """Gives an environment what the package needs at run time, unless it has that already."""
    wanted = runtime_dependencies()
    if not subprocess.run([python, "-c", INSTALLED, *wanted], capture_output=True).returncode:
        return
    say(f"installing {' '.join(wanted)} for {shown(Path(python))}")
    command = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    log = BUILD / "logs" / "dependencies.log"
    run_logged([*command, "--progress-bar", "off", *wanted], log, "installing dependencies")


def link_package(python, package_root):
    """Makes `import facula` work in an environment: one line in a .pth file."""
    asked = subprocess.run(
        [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
    )
    if asked.returncode:
        raise Failure(f"{python} does not run: {asked.stderr.strip()[-300:]}")
    file = Path(asked.stdout.strip()) / "facula-in-tree.pth"
    line = f"{package_root}\n"
    if not file.exists() or file.read_text() != line:
        file.write_text(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--oracle",
        metavar="DIR",
        nargs="?",
        const=str(BUILD / "oracle-venv"),
        help="make the environment with PyTorch there",
    )
    parser.add_argument("--docs", action="store_true", help="make build/docs-venv, with Sphinx")
    parser.add_argument(
        "--compiler", action="store_true", help="with LLVM 19, where Debian has it (optional)"
    )
    parser.add_argument(
        "--target", choices=list(target_python.DEBIAN), help="build and run for this processor, too"
    )
    options = parser.parse_args()
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        raise Failure(
            f"CPython 3.{OLDEST[1]} to 3.{NEWEST[1]} is needed; {sys.executable} is "
            f"{sys.version.split()[0]}. Choose one with PYTHON=..."
        )
    install_system(options.compiler, options.target)
    make_venv(VENV, ROOT / "tools" / "requirements.txt")
    install_dependencies(VENV / "bin" / "python")
    link_package(VENV / "bin" / "python", BUILD / "release" / "python")
    if options.target:
        target_python.unpack(options.target)
    if options.docs:
        make_venv(BUILD / "docs-venv", ROOT / "tools" / "requirements-docs.txt")
    if options.oracle:
        folder = Path(options.oracle).resolve()
        if folder.is_relative_to(ROOT):
            make_venv(folder, ROOT / "tools" / "requirements-oracle.txt")
        install_dependencies(folder / "bin" / "python")
        link_package(folder / "bin" / "python", BUILD / "release" / "python")
    return 0


if __name__ == "__main__":
    run_main(main)
