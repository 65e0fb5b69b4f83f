#!/usr/bin/env python3
"""Runs a script once a C++ debugger is attached to this process.

    PYTHONPATH=build/debug/python python tools/wait_for_debugger.py SCRIPT [ARGUMENT...]

Editors start this under Python's debugger and then attach gdb to it, so that both see the script.
"""

import os
import runpy
import sys
import time
from pathlib import Path


def traced_by(status):
    """The process that traces one, from the text of /proc/PID/status; 0: none."""
    for line in status.splitlines():
        if line.startswith("TracerPid:"):
            return int(line.split()[1])
    return 0


def allow_any_debugger():
    """Lets processes that are no parent of this one attach where Linux's Yama forbids it."""
    import ctypes

    PR_SET_PTRACER = 0x59616D61
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)


def wait(seconds=300):
    """Returns once this process is traced; raises TimeoutError after a while."""
    allow_any_debugger()
    print(f"waiting for a debugger: gdb -p {os.getpid()}", file=sys.stderr, flush=True)
    end = time.monotonic() + seconds
    while not traced_by(Path("/proc/self/status").read_text()):
        if time.monotonic() > end:
            raise TimeoutError(f"no debugger was attached within {seconds} seconds")
        time.sleep(0.1)


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    wait(float(os.environ.get("FACULA_DEBUGGER_SECONDS", "300")))
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
