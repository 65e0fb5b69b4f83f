"""Calls of functions in other processes, and references to values there.

How it works is told in `docs/internals/distributed.md`.
"""

from __future__ import annotations

import os
import re
import socket
from datetime import timedelta

from facula.distributed.rpc import api, backend_registry, functions  # noqa: F401
from facula.distributed.rpc._agent import Agent, WorkerInfo
from facula.distributed.rpc.api import (
    RRef,
    _get_current_rpc_agent,  # noqa: F401
    _is_current_rpc_agent_set,
    _set_rpc_timeout,  # noqa: F401
    get_rpc_timeout,
    get_worker_info,
    remote,
    rpc_async,
    rpc_sync,
    shutdown,
)
from facula.distributed.rpc.backend_registry import BackendType
from facula.distributed.rpc.options import RpcBackendOptions, TensorPipeRpcBackendOptions

__all__ = [
    "BackendType",
    "RRef",
    "RpcBackendOptions",
    "TensorPipeRpcBackendOptions",
    "WorkerInfo",
    "get_rpc_timeout",
    "get_worker_info",
    "init_rpc",
    "is_available",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]

PyRRef = RRef
_count = 0


def is_available():
    """Whether other processes can be called: True."""
    return True


def _host_for(options, world_size):
    """The address by which others reach this process: that of the way to rank 0's."""
    target = os.environ.get("MASTER_ADDR", "127.0.0.1")
    found = re.match(r"tcp://\[?([^\]]*?)\]?:\d+", options.init_method)
    if found:
        target = found[1]
    if options.init_method.startswith("file:") or world_size == 1:
        return "127.0.0.1"
    family, kind, _, _, address = socket.getaddrinfo(target, 1, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as probe:
        probe.connect(address)  # sends nothing
        return probe.getsockname()[0]


def init_rpc(name, backend=None, rank=-1, world_size=None, rpc_backend_options=None):
    """Meet the other workers, after which they can call this one.

    Args:
        name (str): of this worker, of letters, digits and `_:-`, up to 128 of them.
        backend (BackendType): there is one.
        rank (int): the number of this worker; default that of the environment.
        world_size (int): how many workers there are; default that of the environment.
        rpc_backend_options (TensorPipeRpcBackendOptions): timeout, threads, where to meet.

    Raises:
        RuntimeError: rpc is initialized already, a name is wrong or taken, or some do not come.
        TypeError: an argument has another type.

    Source: Damania et al., PyTorch RPC, 2023.
    """
    global _count
    options = TensorPipeRpcBackendOptions() if rpc_backend_options is None else rpc_backend_options
    if backend is not None and not isinstance(backend, BackendType):
        raise TypeError(f"init_rpc(): expected a BackendType; got {type(backend).__name__}")
    if not isinstance(options, RpcBackendOptions):
        raise TypeError(f"init_rpc(): expected RpcBackendOptions; got {type(options).__name__}")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_:-]{1,128}", name):
        raise RuntimeError(
            "init_rpc(): expected a name of letters, digits, _, : and -, up to 128 of them; "
            f"got {name!r}"
        )
    if _is_current_rpc_agent_set():
        raise RuntimeError("init_rpc(): expected one call until shutdown(); got another")

    from facula.distributed import PrefixStore, rendezvous

    found = rendezvous(options.init_method, rank, -1 if world_size is None else world_size)
    store, rank, world_size = next(found)
    api._State.rendezvous = found, store  # a server of a store lives as long as these
    if isinstance(options.rpc_timeout, (int, float)) and options.rpc_timeout > 0:
        store.set_timeout(timedelta(seconds=options.rpc_timeout))
    store = PrefixStore(f"rpc{_count}", store)
    _count += 1
    api._begin(Agent(name, rank, world_size, store, _host_for(options, world_size), options))
