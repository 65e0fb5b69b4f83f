#!/usr/bin/env python3
"""Runs each program with PyTorch and with facula and compares the figures of their last lines.

    python tests/programs/run.py [--packages FOLDER] [--table] [NAME ...]

It is run by a Python that has PyTorch, with facula on PYTHONPATH. `--table` writes README.md.
A program is a plain script that says `import torch`; `needs: PACKAGE` in its docstring names what
else it imports, `agrees to: 0.01` how near the figures must be where that is not 0.001.
"""

import argparse
import ast
import importlib.util
import math
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
NEAR = 1e-3
SECONDS = 300
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf)\b")


class Program(NamedTuple):
    """A script, its first line, the packages it needs and the tolerance of its figures."""

    path: Path
    about: str
    needs: tuple
    near: float


class Outcome(NamedTuple):
    """How one run ended: its last line, or the last line of its error, and the seconds it took."""

    ok: bool
    text: str
    seconds: float


class Row(NamedTuple):
    """One line of the table."""

    program: Program
    state: str
    reason: str
    torch: Outcome | None
    facula: Outcome | None


def read(path):
    """The Program in a file."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    needs = re.search(r"needs: ([\w ,]+)", text)
    near = re.search(r"agrees to: ([\d.e-]+)", text)
    return Program(
        path,
        text.split("\n")[0].split("  needs:")[0],
        tuple(re.split(r"[ ,]+", needs[1].strip())) if needs else (),
        float(near[1].rstrip(".")) if near else NEAR,
    )


def run(command, packages):
    """The Outcome of a Python process with these arguments."""
    paths = [os.environ.get("PYTHONPATH", ""), *packages]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "OMP_NUM_THREADS": "1",  # the programs are small, and others may be at work beside them
    }
    start = time.perf_counter()
    try:
        process = subprocess.run(
            [sys.executable, *command],
            env=environment,
            text=True,
            capture_output=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return Outcome(False, f"not done after {SECONDS} s", SECONDS)
    seconds = time.perf_counter() - start
    lines = (process.stdout if process.returncode == 0 else process.stderr).strip().split("\n")
    return Outcome(process.returncode == 0, lines[-1], seconds)


def agree(expected, found, near):
    """Whether two lines have the same words, and numbers that are as near as that."""
    if _NUMBER.sub("", expected) != _NUMBER.sub("", found):
        return False
    pairs = zip(_NUMBER.findall(expected), _NUMBER.findall(found), strict=True)
    return all(a == b or _near(a, b, near) for a, b in pairs)


def _near(a, b, near):
    """Whether two printed numbers are near: a fraction of them, or a unit of the last decimal."""
    decimals = len(a.partition(".")[2]) if "e" not in a else 0
    unit = 1.001 * 10.0**-decimals if decimals else 0.0
    return math.isclose(float(a), float(b), rel_tol=near, abs_tol=unit)


def compare(program, packages):
    """Runs a program both ways; returns a Row."""
    missing = [name for name in program.needs if not _is_there(name, packages)]
    if missing:
        return Row(program, "not run", f"needs {', '.join(missing)}", None, None)
    torch = run([str(program.path)], packages)
    facula = run(["-m", "facula", "run", str(program.path)], packages)
    if not torch.ok:
        return Row(program, "not run", f"PyTorch: {torch.text}", torch, facula)
    if not facula.ok:
        return Row(program, "missing", facula.text, torch, facula)
    if not agree(torch.text, facula.text, program.near):
        return Row(program, "differs", "", torch, facula)
    return Row(program, "runs", "", torch, facula)


def _is_there(name, packages):
    return importlib.util.find_spec(name) is not None or any(
        (Path(folder) / name).exists() for folder in packages
    )


def _cell(outcome):
    if outcome is None:
        return ""
    return f"`{outcome.text}` {outcome.seconds:.1f} s" if outcome.ok else ""


def table(rows):
    """The text of README.md."""
    lines = [
        "Programs in a user's style, each a plain script that says `import torch`, run with",
        "PyTorch and, unchanged, by `python -m facula run`",
        "(docs/internals/running_unmodified.md). A program's last line has its figures; `runs`",
        "means that facula's are PyTorch's. `make programs` runs all and writes this page.",
        "",
        f"{sum(r.state == 'runs' for r in rows)} of {len(rows)} run.",
        "",
        "| program | | PyTorch | facula |",
        "|---|---|---|---|",
    ]
    for row in rows:
        about = f"[{row.program.path.stem}](programs/{row.program.path.name}): {row.program.about}"
        reason = row.reason.replace("|", "\\|")
        facula = _cell(row.facula) or reason
        lines.append(f"| {about} | {row.state} | {_cell(row.torch)} | {facula} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="programs; all unless some are given")
    parser.add_argument("--packages", action="append", default=[], help="a folder of packages")
    parser.add_argument("--table", action="store_true", help="write README.md")
    options = parser.parse_args()
    packages = [str(Path(folder).resolve()) for folder in options.packages]
    rows = []
    for path in sorted(PROGRAMS.glob("*.py")):
        if options.names and path.stem not in options.names:
            continue
        row = compare(read(path), packages)
        rows.append(row)
        shown = row.reason or f"{row.torch.text} | {row.facula.text}"
        print(f"{path.stem}: {row.state}: {shown}", flush=True)
    if options.table:
        (HERE / "README.md").write_text(table(rows), encoding="utf-8")
    # A program that needs a package which is not there says nothing of facula.
    return 1 if any(row.state in ("differs", "missing") for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
