"""Ranks with accelerators that work together through NCCL."""

from __future__ import annotations

import threading

import facula
from facula import _C
from facula.distributed import _nccl
from facula.distributed._connect import connected_core
from facula.distributed._process_group import (
    ProcessGroup,
    Work,
    _Call,
    _options,
    _to_fill,
    _to_send,
)
from facula.distributed._reduce_op import AllreduceOptions

__all__ = ["ProcessGroupNCCL", "ProcessGroupNCCL2", "ProcessGroupNCCLLazy"]


class _DeviceWork(Work):
    """Calls that a device does later: who waits has the current stream wait, and not the host."""

    def __init__(self, handle, result, copies=()):
        self._handle, self._result, self._copies = handle, list(result), copies
        self._lock = threading.Lock()
        if handle is None:
            self._copy_back()

    def get_future(self):
        """A future of its tensors, which has ended: the current stream waits for them."""
        future = facula.futures.Future()
        try:
            self.wait()
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(self.result())
        return future


class ProcessGroupNCCL(ProcessGroup):
    """Ranks with accelerators that work together through NCCL.

    Calls are given to streams of the device, and return at once: a call that is waited for to the
    current stream, any other to a stream of the group. `Work.wait` has the current stream wait for
    that, and with a timeout the host. Tags of messages have no effect: messages between two ranks
    are taken in their order.

    Args:
        store (Store): one that all ranks share.
        rank, size (int): of this process, and the number of ranks.
        options (Options): what communicators are made with.
        device_id (device): whose communicator is to be made at once.
    """

    Options = _nccl.Options
    NCCLConfig = _nccl.NCCLConfig
    NCCL_CTA_POLICY_DEFAULT, NCCL_CTA_POLICY_EFFICIENCY, NCCL_CTA_POLICY_ZERO = 0, 1, 2
    supports_coalescing = True
    options = None
    _device = None  # of the last tensor
    _is_together = False

    def __init__(self, store, rank, size, options=None, device_id=None, *, _made=None):
        self.options = _nccl.options_of(options)
        core, name, kind, desc = _made or self._connected(store, rank, size, device_id)
        super().__init__(rank, size, core, name, "nccl", desc)
        self._device_type = kind
        self._device_types = [facula.device(kind)]
        self.bound_device_id = device_id
        self._of_barriers = {}  # device -> tensor

    def _connected(self, store, rank, size, device):
        kind = "cuda" if device is None else facula.device(device).type
        _nccl.check_usable(kind)
        name = self.options.group_name or "nccl"
        settings = _nccl.settings_of(self.options, device)
        limit = self.options._timeout
        core = connected_core(store, rank, size, name, limit, list(range(size)), 0, settings)
        return core, name, kind, "undefined"

    @staticmethod
    def get_runtime_nccl_version():
        """The version of NCCL's library: (major, minor, patch)."""
        return _nccl.version()

    @staticmethod
    def get_build_nccl_version():
        """The version of NCCL's interface that the engine declares: (major, minor, patch)."""
        return _nccl.INTERFACE

    def comm_split_count(self):
        """How often this group was cut into others."""
        return self.splits

    def eager_connect_single_device(self, device):
        """Make the communicator of a device before the first call needs it."""
        self.allreduce([facula.zeros(1, device=device)]).wait()

    def _own_device(self):
        if self.bound_device_id is not None:
            return self.bound_device_id
        if self._device is not None:
            return self._device
        current = _C._current_device_index(self._device_type)
        # Programs that have chosen no device have one for each rank of a machine.
        index = current or self._rank % _C._device_count(self._device_type)
        return facula.device(self._device_type, index)

    def _object_device(self):
        return self._own_device()

    def _has_data(self, tensors):
        if not super()._has_data(tensors):
            return False
        self._device = tensors[0].device
        return True

    def _work(self, handle, result, copies=()):
        if self._is_together and copies:
            raise RuntimeError("expected contiguous tensors for coalesced calls over NCCL")
        return _DeviceWork(handle, result, copies)

    # --- several calls as one

    def _start_coalescing(self, device=None):
        self._core.begin_together()
        self._is_together = True

    def _end_coalescing(self, device=None, asyncOp=True):
        self._is_together = False
        return _DeviceWork(self._core.end_together(asyncOp), [])

    def _forget_coalescing(self):
        self._is_together = False
        self._core.end_together(None)

    _group_start, _group_end = _start_coalescing, _end_coalescing

    def _as_one(self, call, arguments, opts):
        opts = _options(opts, AllreduceOptions)
        self._start_coalescing()
        try:
            works = [call(*each, opts) for each in arguments]
        except BaseException:
            self._forget_coalescing()
            raise
        work = self._end_coalescing(None, bool(opts.asyncOp))
        work._result = [t for w in works for t in w.result()]
        return work

    def allreduce_coalesced(self, tensors, opts=None):
        """Reduce several tensors over all ranks, in place, as one call of the device."""
        return self._as_one(self.allreduce, [([t],) for t in tensors], opts)

    def allgather_into_tensor_coalesced(self, outputs, inputs, opts=None):
        """Collect several tensors of all ranks, each in one, as one call of the device."""
        return self._as_one(self._allgather_base, zip(outputs, inputs, strict=True), opts)

    def reduce_scatter_tensor_coalesced(self, outputs, inputs, opts=None):
        """Reduce several tensors; each rank has its part of each; as one call of the device."""
        return self._as_one(self._reduce_scatter_base, zip(outputs, inputs, strict=True), opts)

    all_gather_single_coalesced = allgather_into_tensor_coalesced
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    # --- barriers and messages

    def barrier(self, opts=None):
        """Have the host wait until the devices of all ranks have come."""
        opts = _options(opts, AllreduceOptions)
        ids = list(getattr(opts, "device_ids", ()))
        device = getattr(opts, "device", None) or (
            facula.device(self._device_type, ids[0]) if ids else self._own_device()
        )
        if device not in self._of_barriers:
            self._of_barriers[device] = facula.zeros(1, device=device)
        one = self._of_barriers[device]
        return self._run(_Call.BARRIER, [one], [one], opts, result=[])

    def send(self, tensors, dstRank, tag=0, _async=True):
        """Send a tensor to a rank; the tag has no effect."""
        (tensor,) = tensors
        if not self._has_data((tensor,)):
            return Work(result=[tensor])
        handle = self._core.message(True, _to_send(tensor), dstRank, 0, _async)
        return self._work(handle, [tensor])

    def recv(self, tensors, srcRank, tag=0, _async=True):
        """Fill a tensor with one that a rank sends; the tag has no effect."""
        (tensor,) = tensors
        if srcRank < 0:
            raise RuntimeError("recv(): expected the rank of a sender, over NCCL; got any rank")
        if not self._has_data((tensor,)):
            return Work(result=[tensor])
        copies = []
        filled = _to_fill(tensor, copies)
        handle = self._core.message(False, filled, srcRank, 0, _async)
        return self._work(handle, [tensor], copies)

    def monitored_barrier(self, timeout=None, wait_all_ranks=False):
        """RuntimeError: that is for groups of the CPU."""
        raise RuntimeError("monitored_barrier(): expected a group of the CPU; got one over NCCL")


# PyTorch has three implementations of this backend.
ProcessGroupNCCL2 = ProcessGroupNCCLLazy = ProcessGroupNCCL
