"""No call from Python ends the process, hangs or shows its insides, whatever it is given."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import facula

WORKER = Path(__file__).with_name("bad_calls.py")
MOST_CRASHES = 40


def _worker(*options, **environment):
    root = str(Path(facula.__file__).parents[1])
    path = os.pathsep.join([root, str(WORKER.parent)])
    env = {**os.environ, "PYTHONPATH": path, "PYTHONFAULTHANDLER": "", **environment}
    command = [sys.executable, str(WORKER), *map(str, options)]
    return subprocess.run(command, env=env, capture_output=True, text=True, errors="replace")


def _asks_for_much(what):
    """Whether a number among the arguments is work for longer than the alarm waits."""
    return any(2**30 < int(n) < 2**33 for n in re.findall(r"(?<![\w.])\d+(?![\w.])", what))


def _ending(process):
    if process.returncode == -signal.SIGALRM:
        return "hung"
    tail = [line for line in process.stderr.splitlines() if line.strip()][-2:]
    return f"ended with {process.returncode} {' '.join(tail)}"


def _faults(progress, cases, only=""):
    """Every call that ended the worker or showed an internal error."""
    found, start = [], 0
    while len(found) < MOST_CRASHES:
        common = ["--progress", progress, "--cases", cases, "--only", only]
        process = _worker(*common, "--start", start)
        lines = process.stdout.splitlines()
        found += [line for line in lines if line.startswith("fault:")]
        if lines and lines[-1] == "done":
            return found
        assert progress.exists(), f"the worker did not start: {process.stderr}"
        number = int(progress.read_text())
        what = _worker(*common, "--show", number).stdout.strip() or "a call that cannot be shown"
        ending = _ending(process)
        if ending != "hung" or not _asks_for_much(what):
            found.append(f"call {number} {ending}: {what}")
        start = number + 1
    return found


def test_bad_arguments(tmp_path, full):
    """Drawn arguments for every operator, sample, method, index and class."""
    found = _faults(tmp_path / "progress", 400 if full else 12)
    assert not found, "\n".join(found)
