#!/usr/bin/env python3
"""Checks the style of the tree: clang-format, ruff, and the rules of the house where they are.

python tools/lint.py          # report what differs
python tools/lint.py --fix    # format in place
"""

import argparse
import subprocess
import sys
from pathlib import Path

from console import ROOT, Failure, run_main, say

CPP_FOLDERS = ("include", "src", "python/bindings", "tests/cpp")
PYTHON_FOLDERS = ("python", "tests", "tools", "bench", "examples")
HOUSE = ROOT.parent / "shared" / "tools" / "house.py"


def program(name):
    """A tool of this Python's environment."""
    path = Path(sys.executable).parent / name
    if not path.exists():
        raise Failure(f"{name} is not in .venv; run `make setup`")
    return str(path)


def cpp_files():
    """All C++ files that are written by hand."""
    folders = [ROOT / f for f in CPP_FOLDERS]
    return sorted(
        str(p)
        for f in folders
        if f.is_dir()
        for p in f.rglob("*")
        if p.suffix in {".h", ".cpp", ".cu", ".cuh"}
    )


def checks(fix):
    """The checks as (name, command)."""
    folders = [f for f in PYTHON_FOLDERS if (ROOT / f).is_dir()]
    files = cpp_files()
    ruff = program("ruff")
    found = [
        ("ruff", [ruff, "check", "-q", "--output-format=concise", *["--fix"] * fix, *folders]),
        ("ruff format", [ruff, "format", "--quiet" if fix else "--check", *folders]),
    ]
    if files:
        mode = ["-i"] if fix else ["--dry-run", "--Werror"]
        found.append(("clang-format", [program("clang-format"), *mode, *files]))
    if HOUSE.exists() and not fix:
        found.append(("house", [sys.executable, str(HOUSE), "--root", str(ROOT)]))
    return found


def misformatted(output):
    """clang-format's complaints as one line for each file."""
    files = sorted({line.split(":")[0] for line in output.splitlines() if ": error: " in line})
    return "".join(f"{Path(f).relative_to(ROOT)}: not formatted (make format)\n" for f in files)


def run_check(name, command):
    """Runs one check and prints what it found; returns whether it found nothing."""
    run = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    print(misformatted(run.stdout) if name == "clang-format" else run.stdout, end="", flush=True)
    return run.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fix", action="store_true", help="format in place")
    options = parser.parse_args()
    failed = [name for name, command in checks(options.fix) if not run_check(name, command)]
    say(f"lint: {', '.join(failed)} found something" if failed else "lint: nothing found")
    return 1 if failed else 0


if __name__ == "__main__":
    run_main(main)
