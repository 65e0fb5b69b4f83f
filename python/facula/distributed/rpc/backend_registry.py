"""Backends of rpc: one."""

from __future__ import annotations

import enum

from facula.distributed.rpc.options import TensorPipeRpcBackendOptions

__all__ = ["BackendType", "backend_registered", "construct_rpc_backend_options"]


class BackendType(enum.Enum):
    """What carries the calls."""

    TENSORPIPE = "TENSORPIPE"

    def __repr__(self):
        return f"BackendType.{self.name}"


def backend_registered(backend_name):
    """Whether there is a backend of a name."""
    return backend_name in BackendType.__members__


def construct_rpc_backend_options(backend, rpc_timeout=60.0, init_method="env://", **kwargs):
    """Options of a backend; arguments are those of TensorPipeRpcBackendOptions."""
    return TensorPipeRpcBackendOptions(rpc_timeout=rpc_timeout, init_method=init_method, **kwargs)
