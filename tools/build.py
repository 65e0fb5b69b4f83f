#!/usr/bin/env python3
"""Configures and builds one kind of build, with progress and short error messages.

    .venv/bin/python tools/build.py [--type release|debug|quick|variant|asan|tsan|aarch64] [--tests]

Everything goes to build/TYPE. build/TYPE/python/facula is the importable package: the compiled
parts, and links to the Python files of python/facula.
"""

import argparse
import os
import shutil
import sys
from pathlib import Path

import target_python
from console import (
    BUILD,
    ROOT,
    Failure,
    StepLine,
    fingerprint,
    job_count,
    run_logged,
    run_main,
    say,
)

SANITIZE = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
# By type: CMake's build type, further compiler flags, instruction sets (None: the default ones).
TYPES = {
    "release": ("Release", "", None),
    "debug": ("Debug", "-O0 -g", "base;avx2"),
    "quick": ("Debug", "-O0", "base"),  # the least time between an edit and its test
    # As quick, with records as a later build may have them (tools/test_abi.py).
    "variant": ("Debug", "-O0", "base"),
    # Sanitized is a CMake type without flags of its own, which would come after these.
    "asan": ("Sanitized", f"-O1 -g1 {SANITIZE}", None),
    "tsan": ("Sanitized", "-O1 -g1 -fsanitize=thread -fno-omit-frame-pointer", "base"),
    "aarch64": ("Release", "", "base"),  # for that processor; qemu runs it
}
CROSS = ("aarch64",)  # types that cmake/TYPE.cmake is the toolchain of


def program(name):
    """A tool of this Python's environment, else the system's; raises Failure when there is none."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        raise Failure(f"{name} was not found; run `make setup`")
    return found


def has_llvm():
    """Whether everything is installed of which the compiler of loops is made."""
    llvm = Path("/usr/lib/llvm-19")
    parts = [llvm / "bin" / name for name in ("clang++", "llvm-config", "llvm-link", "opt")]
    headers = [llvm / "include" / "llvm", Path("/usr/include/zstd.h"), Path("/usr/include/zlib.h")]
    return all(path.exists() for path in parts + headers)


def cmake_arguments(kind, tests):
    """CMake's arguments for a type of build."""
    build_type, flags, isas = TYPES[kind]
    arguments = [
        "-S",
        str(ROOT),
        "-B",
        str(BUILD / kind),
        "-G",
        "Ninja",
        f"-DCMAKE_MAKE_PROGRAM={program('ninja')}",
        f"-DCMAKE_BUILD_TYPE={build_type}",
        f"-DCMAKE_CXX_FLAGS={flags}",
        "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-DPython3_EXECUTABLE={sys.executable}",
        f"-DFACULA_TESTS={'ON' if tests else 'OFF'}",
        f"-DFACULA_FENCED={'OFF' if kind in ('release', *CROSS) else 'ON'}",
    ]
    if kind in CROSS:
        arguments += [
            f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/cmake/{kind}.cmake",
            f"-DPython_INCLUDE_DIR={target_python.include_folder(kind)}",
        ]
    if kind == "release" and has_llvm():
        arguments.append("-DFACULA_COMPILER=ON")
    if kind == "variant":
        arguments.append("-DFACULA_RECORD_VARIANT=ON")
    if isas:
        arguments.append(f"-DFACULA_ISAS={isas}")
    if shutil.which("ld.lld") and kind not in CROSS:
        arguments += [
            f"-DCMAKE_{what}_LINKER_FLAGS_INIT=-fuse-ld=lld" for what in ("EXE", "SHARED", "MODULE")
        ]
    return arguments


def configure(kind, tests):
    """Runs CMake when there is no build folder yet or its arguments changed."""
    folder = BUILD / kind
    stamp = folder / ".facula-configured"
    arguments = cmake_arguments(kind, tests)
    wanted = fingerprint(*arguments, sys.version, os.environ.get("CXX", ""))
    if (folder / "build.ninja").exists() and stamp.exists() and stamp.read_text() == wanted:
        return
    say(f"configuring the {kind} build")
    fresh = ["--fresh"] if (folder / "CMakeCache.txt").exists() else []
    run_logged([program("cmake"), *fresh, *arguments], folder / "configure.log", "configuring")
    stamp.write_text(wanted)


def compile_targets(kind, targets):
    """Builds the targets with Ninja; says what was done."""
    folder = BUILD / kind
    steps = StepLine(f"facula: building ({kind})")
    env = {"NINJA_STATUS": "[%f/%t] ", "CLICOLOR_FORCE": "0"}
    command = [program("cmake"), "--build", folder, "-j", job_count(), "--target", *targets]
    try:
        run_logged(command, folder / "build.log", f"building ({kind})", env, steps.show)
    finally:
        steps.close()
    state = f"{steps.done} steps" if steps.done else "up to date"
    say(f"{kind} build: {state}, {steps.seconds():.1f} s")


def refresh_link(link, target):
    """Makes `link` a symbolic link to `target` unless it is one already."""
    if link.is_symlink() and link.readlink() == target:
        return
    if link.is_symlink() or link.is_file():
        link.unlink()
    elif link.is_dir():
        shutil.rmtree(link)
    link.symlink_to(target)


def assemble_package(kind):
    """Puts links to the Python files beside the compiled parts; returns the folder above."""
    package = BUILD / kind / "python" / "facula"
    package.mkdir(parents=True, exist_ok=True)
    sources = {p.name: p for p in (ROOT / "python" / "facula").iterdir() if p.name != "__pycache__"}
    for link in package.iterdir():
        if (
            link.is_symlink()
            and link.readlink().parent == ROOT / "python" / "facula"
            and link.name not in sources
        ):
            link.unlink()
    for name, source in sources.items():
        refresh_link(package / name, source)
    refresh_link(package / "include", ROOT / "include")
    if not list(package.glob("_C*.so")):
        adopt_extension(kind, package)
    return package.parent


def adopt_extension(kind, package):
    """Links an extension that CMake put elsewhere in its build folder."""
    built = [p for p in (BUILD / kind).rglob("_C*.so") if not p.is_symlink()]
    if not built:
        raise Failure(f"the build made no _C extension in build/{kind}")
    refresh_link(package / built[0].name, built[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--type", choices=list(TYPES), default="release")
    parser.add_argument("--tests", action="store_true", help="build the C++ tests, too")
    parser.add_argument(
        "--compiler", action="store_true", help="build libfacula_compiler.so, too (needs LLVM 19)"
    )
    parser.add_argument("--configure-only", action="store_true")
    options = parser.parse_args()
    if not (ROOT / "CMakeLists.txt").exists():
        raise Failure("there is no CMakeLists.txt: is this a whole clone?")
    # Tests are always configured, so that `make demo` and `make test` share one configuration.
    configure(options.type, tests=True)
    if options.configure_only:
        return 0
    targets = ["facula_python"] + (["facula_tests"] if options.tests else [])
    if options.compiler and not has_llvm():
        raise Failure("the compiler of loops needs LLVM 19: apt-get install llvm-19-dev clang-19")
    # One that is there is kept up to date: it has copies of the scalar functions.
    built = (BUILD / options.type / "python" / "facula" / "libfacula_compiler.so").exists()
    wanted = (options.tests and options.type == "release") or built
    if options.compiler or (wanted and has_llvm()):
        targets.append("facula_compiler")
    compile_targets(options.type, targets)
    assemble_package(options.type)
    return 0


if __name__ == "__main__":
    run_main(main)
