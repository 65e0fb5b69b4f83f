"""The fenced allocator stops what reads or writes beside a block, or one that was freed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import facula
import isolated
import pytest

ROOT = str(Path(facula.__file__).parents[1])
HEAD = "import ctypes, facula; x = facula.ones(16); p = x.data_ptr(); "
CASES = {
    "reads behind": ("ctypes.string_at(p + 64, 1)", -signal.SIGSEGV),
    "reads before": ("ctypes.string_at(p - 8192, 1)", -signal.SIGSEGV),
    "writes behind": ("ctypes.memset(p + 64, 0, 1)", -signal.SIGSEGV),
    "writes before": ("ctypes.memset(p & -4096, 0, 1); del x", -signal.SIGABRT),
    "writes into what alignment leaves": (
        "y = facula.ones(3); ctypes.memset(y.data_ptr() + 12, 0, 1); del y",
        -signal.SIGABRT,
    ),
    "reads what was freed": ("del x; ctypes.string_at(p, 1)", -signal.SIGSEGV),
    "keeps to its block": ("ctypes.memset(p, 0, 64); del x", 0),
    "refuses what it cannot fill": (
        "\ntry: facula.empty(2**40)\nexcept RuntimeError: pass",
        0,
    ),
    "fills with the pattern": (
        "facula._C._set_fence_fill(0xAB)\n"
        "assert facula.empty(5, dtype=facula.uint8).tolist() == [0xAB] * 5",
        0,
    ),
}


def run(code):
    """The exit status of a process with fences, or None where the build has none."""
    ask = "\nimport sys; sys.exit(not facula._C._set_fence_fill(0x7f))"
    env = {**os.environ, "PYTHONPATH": ROOT, "FACULA_FENCED_ALLOCATOR": "1"}
    if subprocess.run([sys.executable, "-c", "import facula" + ask], env=env).returncode != 0:
        return None
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True).returncode


@pytest.mark.skipif(isolated.SANITIZED, reason="the sanitizer stops what the fences would stop")
@pytest.mark.parametrize("name", CASES)
def test_fences(name):
    code, expected = CASES[name]
    status = run(HEAD + code)
    if status is None:
        pytest.skip("the release build has no fences")
    assert status == expected
