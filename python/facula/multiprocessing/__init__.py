"""The standard library's `multiprocessing`, with tensors that travel through shared memory.

Everything of the standard module is here. Tensors, storages, parameters and modules that go through
a queue, a pipe, a pool or the arguments of a process are moved to shared memory, and the receiver
sees the same memory.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403

from facula.multiprocessing.reductions import init_reductions
from facula.multiprocessing.spawn import (
    ENV_VAR_PARALLEL_START,
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    "set_sharing_strategy",
    "get_sharing_strategy",
    "get_all_sharing_strategies",
    *multiprocessing.__all__,
]

_all_sharing_strategies = {"file_descriptor", "file_system"}
_sharing_strategy = "file_descriptor"


def set_sharing_strategy(new_strategy):
    """Choose how memory is shared from now on.

    Args:
        new_strategy (str): "file_descriptor": anonymous memory, for which no limit of /dev/shm
            holds; "file_system": files in /dev/shm, which need no open descriptors.

    Raises:
        AssertionError: another name.
    """
    global _sharing_strategy
    if new_strategy not in _all_sharing_strategies:
        raise AssertionError(
            f"invalid sharing strategy {new_strategy!r}, expected one of {_all_sharing_strategies}"
        )
    _sharing_strategy = new_strategy


def get_sharing_strategy():
    """How memory is shared."""
    return _sharing_strategy


def get_all_sharing_strategies():
    """The names that set_sharing_strategy() takes."""
    return _all_sharing_strategies


def _name_prefix():
    """How names of new shared memory begin; "" for anonymous memory."""
    if _sharing_strategy == "file_descriptor":
        return ""
    from facula.multiprocessing._shm_names import prefix

    return prefix()


def _prctl_pr_set_pdeathsig(signal):
    """Have the system send this process a signal when its parent ends (Linux)."""
    import ctypes
    import os

    set_parent_death_signal = 1  # PR_SET_PDEATHSIG of prctl(2)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(set_parent_death_signal, int(signal), 0, 0, 0):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


init_reductions()
