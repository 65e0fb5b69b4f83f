"""Names in /dev/shm, which are removed even when every process of the program is killed.

A shell waits on a pipe whose other end this process and its forked children have. The pipe ends
with the last of them, and the shell removes what is left of the names that begin with our prefix.
"""

from __future__ import annotations

import os
import threading

# The first shell only starts the second one, which so is nobody's child to wait for.
_WATCH = (
    "exec 3<&0; (trap '' INT TERM HUP QUIT; while read -r line; do :; done; "
    'rm -f "/dev/shm$0"_* ) <&3 & exit 0'
)
_lock = threading.Lock()
_prefix = None
_pipe = None  # kept open: its end is the signal


def prefix():
    """How this program's names begin; the first call starts the shell."""
    global _prefix, _pipe
    with _lock:
        if _prefix is None:
            name = f"/facula_{os.getpid()}_{os.urandom(6).hex()}"
            _pipe = _watched(name)
            _prefix = name
    return _prefix


def _watched(name):
    reading, writing = os.pipe()
    null = [(os.POSIX_SPAWN_OPEN, out, "/dev/null", os.O_WRONLY, 0) for out in (1, 2)]
    try:
        shell = os.posix_spawn(
            "/bin/sh",
            ["sh", "-c", _WATCH, name],
            {"PATH": os.defpath},
            file_actions=[(os.POSIX_SPAWN_DUP2, reading, 0), *null],
            setsid=True,
        )
    finally:
        os.close(reading)
    os.waitpid(shell, 0)
    _at_exit()
    return writing


def _at_exit():
    """Let go of the names when this process or a child of it ends as it should."""
    import atexit
    from multiprocessing import util

    from facula import _C

    atexit.register(_C._let_go_of_shared_names)
    util.register_after_fork(_C, _in_child)


def _in_child(core):
    from multiprocessing import util

    global _lock
    _lock = threading.Lock()
    util.Finalize(None, core._let_go_of_shared_names, exitpriority=-1000)
