"""A group whose tensors of each type of device have a backend of their own."""

from __future__ import annotations

import facula
from facula.distributed._process_group import ProcessGroup


class _Cores:
    """The groups of the core that belong together."""

    def __init__(self, parts):
        self._parts = parts

    def leave(self, error, drain):
        """Take no part in any of them."""
        for part in self._parts:
            part._core.leave(error, drain)

    def abort(self, reason):
        """Make the calls of all fail."""
        for part in self._parts:
            part._core.abort(reason)

    def sequence(self):
        """The number of collectives."""
        return sum(part._core.sequence() for part in self._parts)


def _tensor_among(values):
    """The first tensor in nested lists; None if there is none."""
    for value in values:
        if isinstance(value, facula.Tensor):
            return value
        if isinstance(value, (list, tuple)):
            found = _tensor_among(value)
            if found is not None:
                return found
    return None


class GroupOfDevices(ProcessGroup):
    """Ranks of which each type of device has a backend: "cpu:gloo,cuda:nccl".

    Args:
        by_device (dict): type of a device -> ProcessGroup.
        name, desc (str): see `ProcessGroup`.
    """

    def __init__(self, by_device, name, desc):
        first = next(iter(by_device.values()))
        parts = list(dict.fromkeys(by_device.values()))
        super().__init__(first.rank(), first.size(), _Cores(parts), name, "undefined", desc)
        self._parts, self._by_device = parts, by_device
        self._device_types = [facula.device(kind) for kind in by_device]

    def _get_backend(self, device=None):
        kind = next(iter(self._by_device)) if device is None else facula.device(device).type
        if kind not in self._by_device:
            raise RuntimeError(f"No backend type associated with device type {kind}")
        return self._by_device[kind]

    def _of(self, values):
        tensor = _tensor_among(values)
        kind = None if tensor is None or tensor.device.type == "meta" else tensor.device
        return self._get_backend(kind)

    def _object_device(self):
        return self._get_backend()._object_device()

    @property
    def bound_device_id(self):
        """The accelerator of this process, or None."""
        return next((p.bound_device_id for p in self._parts if p.bound_device_id), None)

    def barrier(self, opts=None):
        """Wait until all ranks have come, and their accelerators if there are any."""
        kinds = [kind for kind in self._by_device if kind != "cpu"] or ["cpu"]
        return self._by_device[kinds[0]].barrier(opts)

    def monitored_barrier(self, timeout=None, wait_all_ranks=False):
        """A barrier of the CPU that names the ranks that do not come."""
        self._get_backend("cpu").monitored_barrier(timeout, wait_all_ranks)

    def abort(self):
        """Make all calls of the group fail, here and at the other ranks."""
        for part in self._parts:
            part.abort()

    def shutdown(self):
        """Take no part any more, after what was begun has ended."""
        for part in self._parts:
            part.shutdown()

    def set_timeout(self, timeout):
        """How long later calls wait for other ranks."""
        for part in self._parts:
            part.set_timeout(timeout)

    _set_default_timeout = set_timeout


def _by_tensor(name):
    plain = getattr(ProcessGroup, name)

    def call(self, *args, **kwargs):
        return getattr(self._of((*args, *kwargs.values())), name)(*args, **kwargs)

    call.__name__, call.__doc__ = name, plain.__doc__
    return call


_CALLS = (
    "allreduce allreduce_coalesced broadcast reduce allgather _allgather_base all_gather_single "
    "allgather_coalesced allgather_into_tensor_coalesced all_gather_single_coalesced gather "
    "gather_single gather_into_tensor scatter reduce_scatter _reduce_scatter_base "
    "reduce_scatter_single reduce_scatter_tensor_coalesced reduce_scatter_single_coalesced "
    "alltoall alltoall_base all_to_all_single send recv recv_anysource"
)
for _name in _CALLS.split():
    setattr(GroupOfDevices, _name, _by_tensor(_name))
