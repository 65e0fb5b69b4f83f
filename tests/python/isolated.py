"""Runs pieces of tests in a process of their own: a crash, a hang or a flood of memory there is a
failure here."""

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
GIGABYTE = 1 << 30
# Sanitizers reserve terabytes of addresses: their processes cannot be limited so. Nor may Python
# run between fork and exec there: a thread may have held the lock of the sanitizer's allocator.
SANITIZED = "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ


def limits(memory):
    """What a child sets before it begins: address space in bytes, no core files, Ctrl-C heeded."""
    if SANITIZED:
        return None

    def set_limits():
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # Whatever a shell starts in the background ignores Ctrl-C, and so do its children.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    return set_limits


def start(code, *, memory=4 * GIGABYTE, **options):
    """A process that runs Python code, with the suite's folder on its path."""
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-c", code],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "2"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=limits(memory),
        **options,
    )


def run(code, *, seconds=120, memory=4 * GIGABYTE):
    """What the code printed; the test fails where it ends in another way than by itself."""
    process = start(code, memory=memory)
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"it still runs after {seconds} s\n{out[-2000:]}\n{err[-4000:]}")
    assert process.returncode == 0, (
        f"exit status {process.returncode}\n{out[-2000:]}\n{err[-4000:]}"
    )
    return out
