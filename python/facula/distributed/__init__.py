"""Processes that work together: groups of them, and collectives on tensors.

On one machine tensors pass through shared memory. A rank that is lost, or that calls something else
than the others, is named in an error at all ranks; see `docs/internals/distributed.md`.
"""

from __future__ import annotations

from facula import _missing
from facula.distributed._progress import progress  # noqa: F401
from facula.distributed.distributed_c10d import *  # noqa: F403
from facula.distributed.distributed_c10d import (  # noqa: F401
    __all__,
    _all_gather_base,
    _coalescing_manager,
    _CoalescingManager,
    _get_default_group,
    _get_process_group_name,
    _make_nccl_premul_sum,
    _rank_not_in_group,
    _reduce_scatter_base,
)
from facula.distributed.rendezvous import register_rendezvous_handler, rendezvous  # noqa: F401


def _is_spmd_types_available():
    return False


def breakpoint(rank=0, skip=0, timeout_s=3600):
    """Python's debugger; RuntimeError without a process group."""
    _get_default_group()


def __getattr__(name):
    if name.startswith("__"):
        raise _missing.attribute(__name__, name)
    return _missing.submodule(__name__, name)
