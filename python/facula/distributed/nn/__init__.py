"""Collectives with derivatives."""

from facula.distributed.nn.functional import (
    all_gather,
    all_reduce,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    scatter,
)

__all__ = [
    "RemoteModule",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def __getattr__(name):
    # rpc is loaded by those who use it.
    if name == "RemoteModule":
        from facula.distributed.nn.api.remote_module import RemoteModule

        return RemoteModule
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
