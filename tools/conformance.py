#!/usr/bin/env python3
"""Runs the conformance sweep over PyTorch's databases and keeps the floor.

    python tools/conformance.py --harness DIR --python ORACLE_PYTHON [--jobs 2] [--update] [WHAT...]

WHAT is ops, modules or optim (default: all that the floor file names, else ops).
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import conformance_floor
from console import BUILD, Failure, run_main, say

SECONDS = 1500


def sweep(harness, python, what, jobs):
    """One sweep; returns the file with its result."""
    result = BUILD / "reports" / f"conformance-{what}.json"
    result.parent.mkdir(parents=True, exist_ok=True)
    result.unlink(missing_ok=True)
    fails = result.with_suffix(".tsv")
    command = [
        python,
        str(harness / "opinfo.py"),
        what,
        "--module",
        "facula",
        "--jobs",
        str(jobs),
        "--json",
        str(result),
        "--fail-log",
        str(fails),
        "--quiet",
    ]
    say(f"conformance sweep: {what}")
    try:
        subprocess.run(command, env={**os.environ}, stdin=subprocess.DEVNULL, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise Failure(f"the sweep of {what} took more than {SECONDS} s") from None
    if not result.exists():
        raise Failure(f"the sweep of {what} left no result")
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*")
    parser.add_argument("--harness", type=Path, required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--update", action="store_true", help="raise the floor to what passed")
    options = parser.parse_args()
    harness = options.harness.resolve()
    if not (harness / "opinfo.py").exists():
        raise Failure(f"there is no conformance harness in {harness}")
    names = options.what or list(conformance_floor.read_floor()) or ["ops"]
    lowered = 0
    for what in names:
        result = sweep(harness, options.python, what, options.jobs)
        lowered += not conformance_floor.check(result, options.update)
    return 1 if lowered else 0


if __name__ == "__main__":
    run_main(main)
