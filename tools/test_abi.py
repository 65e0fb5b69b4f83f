#!/usr/bin/env python3
"""Runs plug-ins that were compiled against one build with another whose records differ.

    .venv/bin/python tools/test_abi.py [--type quick]

Builds the type and the type `variant` (-DFACULA_RECORD_VARIANT: further fields in the midst of
records), compiles the plug-ins of the C interface against the first, and runs their tests with
each.
"""

import argparse
import json
import os
import subprocess
import sys

from console import BUILD, ROOT, Failure, run_main, say

PLUGINS = (("toy_operator", ".cpp"), ("toy_layout", ".cpp"), ("toy_c", ".c"))
TESTS = ("test_toy_layout.py", "test_c_interface.py", "test_toy_operator.py")


def python(kind, *arguments, **environment):
    """Runs Python with the package of a build; its output."""
    environment = {**os.environ, "PYTHONPATH": str(BUILD / kind / "python"), **environment}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE
    )
    if done.returncode:
        raise Failure(f"{kind}: {' '.join(arguments[:4])} failed\n{done.stdout}")
    return done.stdout


def compile_plugins(kind, folder):
    """Compiles the plug-ins against a build's headers and library, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'tests' / 'python')!r})\n"
        "from plugin_library import compiled\n"
        f"for name, suffix in {PLUGINS!r}: compiled(name, {str(folder)!r}, suffix, ('-DABI',))"
    )
    python(kind, "-c", code)


# The files of facula's library that are mapped once a plug-in is loaded.
MAPPED = """
import json, sys, facula
facula.ops.load_library(sys.argv[1])
with open("/proc/self/maps") as maps:
    print(json.dumps(sorted({line.split()[-1] for line in maps if "libfacula.so" in line})))
"""


def check_one_library(kind, plugins):
    """Raises Failure unless a plug-in of another build runs with this build's library alone."""
    mapped = json.loads(python(kind, "-c", MAPPED, str(plugins / "toy_c.so")))
    own = os.path.realpath(BUILD / kind / "python" / "facula" / "libfacula.so")
    if [os.path.realpath(path) for path in mapped] != [own]:
        raise Failure(f"test_abi: expected {own} to be mapped alone; got {mapped}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--type", default="quick")
    kind = parser.parse_args().type
    for each in (kind, "variant"):
        subprocess.run([sys.executable, ROOT / "tools" / "build.py", "--type", each], check=True)
    sizes = [
        python(each, "-c", "import facula; print(facula._C._record_size)").strip()
        for each in (kind, "variant")
    ]
    if sizes[0] == sizes[1]:
        raise Failure(f"test_abi: the records of both builds have {sizes[0]} bytes")
    plugins = BUILD / "abi"
    compile_plugins(kind, plugins)
    tests = [f"tests/python/plugins/{name}" for name in TESTS]
    for each, size in zip((kind, "variant"), sizes, strict=True):
        check_one_library(each, plugins)
        out = python(each, "-m", "pytest", "-q", *tests, FACULA_TEST_PLUGINS=str(plugins))
        say(f"plug-ins compiled against {kind}, run with {each} (records of {size} bytes)")
        print(out.strip().splitlines()[-1])


if __name__ == "__main__":
    run_main(main)
