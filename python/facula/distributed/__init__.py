"""Processes that work together: this build has none, and answers so.

The names that programs take are here, as in a PyTorch built without them: questions are answered
(`is_available()` is False), and what needs a process group says that there is none.
"""

from __future__ import annotations

from facula import _missing
from facula.distributed.distributed_c10d import *  # noqa: F403
from facula.distributed.distributed_c10d import (  # noqa: F401
    __all__,
    _get_default_group,
    _rank_not_in_group,
)


def _is_spmd_types_available():
    return False


def breakpoint(rank=0, skip=0, timeout_s=3600):
    """Python's debugger; RuntimeError without a process group."""
    _get_default_group()


def __getattr__(name):
    if name.startswith("__"):
        raise _missing.attribute(__name__, name)
    return _missing.submodule(__name__, name)
