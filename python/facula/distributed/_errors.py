"""Errors between processes; the core raises DistBackendError for its own."""

from facula._C import _distributed

__all__ = [
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "QueueEmptyError",
]


class DistError(RuntimeError):
    """An error between processes."""


class DistBackendError(DistError):
    """Ranks that are lost or late, or whose calls differ: its text names them."""


class DistNetworkError(DistError):
    """An error of the network."""


class DistStoreError(DistError):
    """An error of a store."""


class QueueEmptyError(DistStoreError):
    """A queue of a store that is empty."""


for _class in (DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError):
    _class.__module__ = "facula.distributed"
_distributed.set_error_class(DistBackendError)
