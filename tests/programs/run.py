#!/usr/bin/env python3
"""Runs each program with PyTorch and with facula and compares the figures of their last lines.

    python tests/programs/run.py [--packages FOLDER] [--table] [NAME ...]

It is run by a Python that has PyTorch, with facula on PYTHONPATH. `--table` writes README.md from
the newest result of each program, which build/reports/programs.json keeps.
A program is a plain script that says `import torch`; `needs: PACKAGE` in its docstring names what
else it imports, `agrees to: 0.01` how near the figures must be where that is not 0.001.
"""

import argparse
import ast
import importlib.util
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
RESULTS = HERE.parents[1] / "build" / "reports" / "programs.json"
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
    """How one run ended: its last line, or the last line of its error."""

    ok: bool
    text: str


class Row(NamedTuple):
    """A program's result: runs, differs, missing or not run; why; the last lines of both."""

    state: str
    reason: str
    torch: str = ""
    facula: str = ""


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
    try:
        process = subprocess.run(
            [sys.executable, *command],
            env=environment,
            text=True,
            capture_output=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return Outcome(False, f"not done after {SECONDS} s")
    if process.returncode == 0:
        return Outcome(True, process.stdout.strip().split("\n")[-1])
    lines = process.stderr.strip().split("\n")
    # A package may put an error of its own on top of the name that was missing.
    lacking = [line for line in lines if ": facula lacks it" in line]
    return Outcome(False, (lacking or lines)[-1])


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
        return Row("not run", f"needs {', '.join(missing)}")
    torch = run([str(program.path)], packages)
    if not torch.ok:
        return Row("not run", f"PyTorch: {torch.text}")
    facula = run(["-m", "facula", "run", str(program.path)], packages)
    if not facula.ok:
        return Row("missing", facula.text, torch.text)
    same = agree(torch.text, facula.text, program.near)
    return Row("runs" if same else "differs", "", torch.text, facula.text)


def _is_there(name, packages):
    return importlib.util.find_spec(name) is not None or any(
        (Path(folder) / name).exists() for folder in packages
    )


def known():
    """The newest result of each program that is there, as Rows by name."""
    if not RESULTS.exists():
        return {}
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))
    return {name: Row(*row) for name, row in rows.items() if (PROGRAMS / f"{name}.py").exists()}


def keep(name, row):
    """Notes a program's result among those of before."""
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    rows = {**known(), name: row}
    RESULTS.write_text(json.dumps(rows, indent=1, sort_keys=True), encoding="utf-8")


def table(rows):
    """The text of README.md for Rows by name."""
    lines = [
        "Programs in a user's style, each a plain script that says `import torch`, run with",
        "PyTorch and, unchanged, by `python -m facula run`",
        "(docs/internals/running_unmodified.md). A program's last line has its figures; `runs`",
        "means that facula's are PyTorch's. `make programs` runs all and writes this page.",
        "",
        f"{sum(row.state == 'runs' for row in rows.values())} of {len(rows)} run.",
        "",
        "| program | | PyTorch | facula |",
        "|---|---|---|---|",
    ]
    for name, row in sorted(rows.items()):
        about = read(PROGRAMS / f"{name}.py").about
        cells = [f"[{name}](programs/{name}.py): {about}", row.state]
        cells += [row.torch and f"`{row.torch}`", row.facula and f"`{row.facula}`" or row.reason]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="programs; all unless some are given")
    parser.add_argument("--packages", action="append", default=[], help="a folder of packages")
    parser.add_argument("--table", action="store_true", help="write README.md")
    options = parser.parse_args()
    packages = [str(Path(folder).resolve()) for folder in options.packages]
    bad = 0
    for path in sorted(PROGRAMS.glob("*.py")):
        if options.names and path.stem not in options.names:
            continue
        row = compare(read(path), packages)
        keep(path.stem, row)
        # A program that needs a package which is not there says nothing of facula.
        bad += row.state in ("differs", "missing")
        print(
            f"{path.stem}: {row.state}: {row.reason or f'{row.torch} | {row.facula}'}", flush=True
        )
    if options.table:
        (HERE / "README.md").write_text(table(known()), encoding="utf-8")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
