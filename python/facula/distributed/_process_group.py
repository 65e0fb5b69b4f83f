"""Process groups and Work: PyTorch's classes over those of the core."""

from __future__ import annotations

import enum
import threading
from datetime import timedelta

import facula
from facula._C import _distributed
from facula.distributed._errors import DistBackendError
from facula.distributed._reduce_op import (
    AllreduceOptions,
    BroadcastOptions,
    ReduceOp,
    number_and_factor,
)

__all__ = ["ProcessGroup", "ProcessGroupGloo", "ProcessGroupMPI", "Work"]


class _Call(enum.IntEnum):
    """The numbers of the core (engine.h)."""

    BARRIER = 1
    BROADCAST = 2
    ALL_REDUCE = 3
    REDUCE = 4
    ALL_GATHER = 5
    GATHER = 6
    SCATTER = 7
    REDUCE_SCATTER = 8
    ALL_TO_ALL = 9


_ALL_REDUCE, _BROADCAST = int(_Call.ALL_REDUCE), int(_Call.BROADCAST)


def milliseconds(timeout):
    """A timeout as a whole number of milliseconds, at least 1.

    Args:
        timeout (timedelta or float): seconds, if it is a number.
    """
    if isinstance(timeout, timedelta):
        timeout = timeout.total_seconds()
    return max(1, int(timeout * 1000))


class Work:
    """A communication that is under way, or has ended.

    Example:
        >>> facula.distributed.Work().is_completed()
        True
    """

    _handle = None
    _result = ()
    _copies = ()  # (tensor of the caller, contiguous one that was filled in its place)
    _lock = None  # who waits while another thread copies waits for that, too

    def __init__(self, handle=None, result=(), copies=()):
        self._handle = handle
        self._result = list(result)
        if not copies:
            return
        self._copies, self._lock = copies, threading.Lock()
        if handle is None:
            self._copy_back()
        else:
            handle.then(self._copy_back)

    def _copy_back(self):
        if self._lock is None:
            return
        with self._lock:
            copies, self._copies = self._copies, ()
            with facula.no_grad():
                for tensor, filled in copies:
                    tensor.detach().copy_(filled)

    def wait(self, timeout=None):
        """Wait until it has ended.

        Args:
            timeout (timedelta): how long; default that of the group.

        Returns:
            bool: True

        Raises:
            DistBackendError: it failed, or the time has passed.
        """
        if self._handle is not None:
            self._handle.wait(milliseconds(timeout) if timeout else 0)
            self._copy_back()
        return True

    synchronize = wait

    def is_completed(self):
        """Whether it has ended, with or without success."""
        return self._handle is None or self._handle.is_completed()

    def is_success(self):
        """Whether it has ended without an error."""
        return self.is_completed() and self.exception() is None

    def exception(self):
        """The error that it ended with, or None."""
        text = None if self._handle is None else self._handle.error()
        return None if text is None else DistBackendError(text)

    def result(self):
        """The tensors that it filled."""
        return list(self._result)

    def source_rank(self):
        """The rank that a message came from."""
        return -1 if self._handle is None else self._handle.source()

    _source_rank = source_rank

    def get_future(self):
        """A future of its tensors.

        Returns:
            facula.futures.Future: of a list of tensors.
        """
        future = facula.futures.Future()

        def end():
            error = self.exception()
            if error is not None:
                return future.set_exception(error)
            self._copy_back()
            future.set_result(self.result())

        if self._handle is None:
            end()
        else:
            self._handle.then(end)
        return future

    def abort(self):
        """NotImplementedError: a group is aborted as a whole (`ProcessGroup.abort`)."""
        raise NotImplementedError("Work.abort(): a single call cannot be aborted")


class _Message(Work):
    """A message: nobody but its waiter notices that it has ended."""

    def __init__(self, handle, result, copies=()):
        self._handle, self._result, self._copies = handle, result, copies
        self._lock = threading.Lock()

    def is_completed(self):
        """Whether it has ended, with or without success."""
        done = self._handle.is_completed()
        if done:
            self.wait()
        return done

    def get_future(self):
        """A future of its tensors."""
        future = facula.futures.Future()

        def wait():
            try:
                self.wait()
                future.set_result(self.result())
            except Exception as error:
                future.set_exception(error)

        threading.Thread(target=wait, daemon=True).start()
        return future


def _is_dense(tensor):
    return tensor.is_contiguous() and not (tensor.is_conj() or tensor.is_neg())


def _plain(tensor):
    """The tensor itself, or that which a result of functional collectives stands for."""
    if type(tensor) is not facula.Tensor and hasattr(tensor, "trigger_wait"):
        return tensor.trigger_wait()
    return tensor


def _to_send(tensor):
    tensor = _plain(tensor)
    return (
        tensor if _is_dense(tensor) else tensor.detach().resolve_conj().resolve_neg().contiguous()
    )


def _to_fill(tensor, copies, keep_values=False):
    """A contiguous tensor to be filled in place of `tensor`, noted in `copies` if it is another."""
    tensor = _plain(tensor)
    if _is_dense(tensor):
        return tensor
    if keep_values:
        filled = _to_send(tensor)
    else:
        filled = facula.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    copies.append((tensor, filled))
    return filled


class _Closed:
    """In place of the engine of a group that was taken down."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, what):
        raise DistBackendError(
            f"group {self._name!r}: expected a group in use; got one that was destroyed"
        )


class ProcessGroup:
    """Ranks that work together; made by `init_process_group` and `new_group`.

    Args:
        rank (int): the number of this process in the group.
        size (int): the number of ranks.

    Subclasses may replace the collectives by their own.
    """

    class BackendType(enum.IntEnum):
        """What moves the data."""

        UNDEFINED = 0
        GLOO = 1
        NCCL = 2
        UCC = 3
        MPI = 4
        XCCL = 5
        CUSTOM = 6

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, CUSTOM = BackendType
    simulates = False  # whether it only counts what a program would move
    _device_type = "cpu"  # of the tensors that it takes
    supports_coalescing = False  # whether calls of a scope become one
    supports_splitting = True
    supports_abort_hooks = supports_completion_hooks = supports_reconfigure = False
    supports_shrinking = supports_window = False
    splits = 0  # how often it was cut into groups
    bound_device_id = None

    class Options:
        """What a group is made with."""

        def __init__(self, backend="undefined", timeout=timedelta(minutes=30)):
            self.backend, self._timeout = backend, timeout

    def __init__(self, rank, size, _core=None, _name="", _backend="undefined", _desc="undefined"):
        self._rank, self._size, self._core = rank, size, _core
        self._name, self._backend, self._desc = _name, _backend, _desc
        self._device_types = [facula.device("cpu")]

    def rank(self):
        """The number of this process in the group."""
        return self._rank

    def size(self):
        """The number of ranks in the group."""
        return self._size

    def name(self):
        """The name of the backend."""
        return self._backend

    getBackendName = name

    @property
    def group_name(self):
        """The name of the group, which is the same at all ranks."""
        return self._name

    @property
    def group_desc(self):
        """What the group is for."""
        return self._desc

    def _set_group_name(self, name):
        self._name = name

    def _set_group_desc(self, desc):
        self._desc = desc

    def _get_backend_name(self):
        return self._backend

    def _get_backend(self, device=None):
        return self

    def get_backend(self, device):
        """The group that has the calls on tensors of a device."""
        return self._get_backend(device)

    def get_group_store(self):
        """The store by which the ranks of the group found each other."""
        from facula.distributed._world import _world

        if self not in _world.pg_map:
            raise RuntimeError("get_group_store(): expected a group that has a store")
        return _world.pg_map[self][1]

    def supports_tensor_alloc(self, device):
        """Whether the group has memory of its own for tensors: False."""
        return False

    def _get_sequence_number_for_group(self):
        return self._core.sequence()

    def _object_device(self):
        """Where pickled objects travel."""
        return facula.device(self._device_type)

    def _has_data(self, tensors):
        """Whether there is something to do: nothing is done for meta tensors.

        Raises:
            RuntimeError: a tensor is on another device, or sparse.
        """
        for tensor in tensors:
            if tensor.device.type == "meta":
                return False
            if tensor.device.type != self._device_type:
                raise RuntimeError(
                    f"No backend type associated with device type {tensor.device.type}"
                )
            if tensor.layout is not facula.strided:
                raise RuntimeError(f"expected strided tensors; got the layout {tensor.layout}")
        return True

    def _run(
        self,
        call,
        inputs,
        outputs,
        opts,
        root=-1,
        copies=(),
        result=None,
        parts=(None, None),
        shown=None,
    ):
        number, factor = number_and_factor(opts.reduceOp)
        handle = self._core.run(
            int(call), inputs, outputs, number, factor, root, bool(opts.asyncOp), *parts, shown
        )
        return self._work(handle, outputs if result is None else result, copies)

    def _work(self, handle, result, copies=()):
        return Work(handle, result, copies)

    def allreduce(self, tensors, opts=None):
        """Reduce a tensor over all ranks, in place. Returns a Work."""
        opts = _options(opts, AllreduceOptions)
        (tensor,) = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        if tensor.layout is facula.sparse_coo:
            return self._allreduce_sparse(tensor, opts)
        if not self._has_data((tensor,)):
            return Work(result=[tensor])
        copies = []
        filled = _to_fill(tensor, copies, keep_values=True)
        return self._run(_ALL_REDUCE, [filled], [filled], opts, -1, copies, [tensor])

    def _allreduce_sparse(self, tensor, opts):
        if opts.reduceOp != ReduceOp.SUM:
            raise ValueError(f"all_reduce(): expected SUM for sparse tensors; got {opts.reduceOp}")
        mine = tensor.detach().coalesce()
        counts = self._gather_all(facula.tensor([mine._nnz()], device=tensor.device))
        most = max(int(n) for n in counts)

        def padded(part, dim):
            shape = list(part.shape)
            shape[dim] = most
            whole = facula.zeros(shape, dtype=part.dtype, device=part.device)
            whole.narrow(dim, 0, part.shape[dim]).copy_(part)
            return whole

        indices = self._gather_all(padded(mine.indices(), 1))
        values = self._gather_all(padded(mine.values(), 0))
        total = facula.sparse_coo_tensor(
            facula.cat([i[:, : int(n)] for i, n in zip(indices, counts, strict=False)], 1),
            facula.cat([v[: int(n)] for v, n in zip(values, counts, strict=False)], 0),
            tensor.shape,
        ).coalesce()
        with facula.no_grad():
            tensor.copy_(total)
        return Work(result=[tensor])

    def _gather_all(self, tensor):
        parts = [facula.empty_like(tensor) for _ in range(self._size)]
        self.allgather([parts], [tensor]).wait()
        return parts

    def allreduce_coalesced(self, tensors, opts=None):
        """Reduce several tensors over all ranks, in place."""
        works = [self.allreduce([t], opts) for t in tensors]
        return _Together(works)

    def allreduce_sparse(self, tensors, opts=None):
        """Reduce a sparse tensor over all ranks, in place."""
        return self.allreduce(tensors, opts)

    def broadcast(self, tensors, opts=None):
        """Copy the tensor of rank `opts.rootRank` to all."""
        opts = _options(opts, BroadcastOptions)
        (tensor,) = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        self._check_root("broadcast", opts.rootRank)
        if not self._has_data((tensor,)):
            return Work(result=[tensor])
        copies = []
        filled = _to_fill(tensor, copies, keep_values=self._rank == opts.rootRank)
        return self._run(_BROADCAST, [], [filled], opts, opts.rootRank, copies, [tensor])

    def reduce(self, tensors, opts=None):
        """Reduce a tensor over all ranks, in place at rank `opts.rootRank`."""
        opts = _options(opts, AllreduceOptions)
        (tensor,) = tensors
        self._check_root("reduce", opts.rootRank)
        if not self._has_data((tensor,)):
            return Work(result=[tensor])
        copies = []
        filled = _to_fill(tensor, copies, keep_values=True)
        if self._rank != opts.rootRank:
            copies = []
        return self._run(_Call.REDUCE, [filled], [filled], opts, opts.rootRank, copies, [tensor])

    def allgather(self, output_tensors, input_tensors, opts=None):
        """Collect the tensors of all ranks in lists."""
        opts = _options(opts, AllreduceOptions)
        (outputs,), (tensor,) = output_tensors, input_tensors
        self._check_list("allgather", "output", outputs, tensor)
        if not self._has_data((tensor, *outputs)):
            return Work(result=outputs)
        copies = []
        filled = [_to_fill(t, copies) for t in outputs]
        return self._run(_Call.ALL_GATHER, [_to_send(tensor)], filled, opts, -1, copies, outputs)

    def allgather_coalesced(self, output_lists, input_list, opts=None):
        """Collect several tensors of all ranks: `output_lists` has a list for each rank."""
        return _Together(
            [
                self.allgather([[outputs[i] for outputs in output_lists]], [tensor], opts)
                for i, tensor in enumerate(input_list)
            ]
        )

    def _allgather_base(self, output, input, opts=None):
        opts = _options(opts, AllreduceOptions)
        if output.numel() != input.numel() * self._size:
            raise RuntimeError(
                "all_gather_into_tensor(): expected an output of the input's size times the "
                f"number of ranks, {input.numel()} x {self._size} elements; got {output.numel()}"
            )
        if output.dtype != input.dtype:
            raise RuntimeError(
                f"all_gather_into_tensor(): expected tensors of one dtype; got {output.dtype} "
                f"and {input.dtype}"
            )
        if not self._has_data((output, input)):
            return Work(result=[output])
        copies = []
        whole = _to_fill(output, copies)
        parts = list(whole.detach().view(self._size, -1).unbind(0)) if input.numel() else None
        parts = parts or [whole.detach().view(-1)] * self._size
        sent = _to_send(input).detach().view(-1)
        return self._run(_Call.ALL_GATHER, [sent], parts, opts, -1, copies, [output], shown=input)

    all_gather_single = _allgather_base

    def allgather_into_tensor_coalesced(self, outputs, inputs, opts=None):
        """Collect several tensors of all ranks, each in one."""
        return _Together(
            [self._allgather_base(o, i, opts) for o, i in zip(outputs, inputs, strict=False)]
        )

    all_gather_single_coalesced = allgather_into_tensor_coalesced

    def gather(self, output_tensors, input_tensors, opts=None):
        """Collect the tensors of all ranks in a list at rank `opts.rootRank`."""
        opts = _options(opts, AllreduceOptions)
        (tensor,) = input_tensors
        self._check_root("gather", opts.rootRank)
        outputs = list(output_tensors[0]) if self._rank == opts.rootRank else []
        if self._rank == opts.rootRank:
            self._check_list("gather", "output", outputs, tensor)
        if not self._has_data((tensor, *outputs)):
            return Work(result=outputs)
        copies = []
        filled = [_to_fill(t, copies) for t in outputs]
        root = opts.rootRank
        return self._run(_Call.GATHER, [_to_send(tensor)], filled, opts, root, copies, outputs)

    def gather_single(self, output, input, opts=None):
        """Collect the tensors of all ranks in one at rank `opts.rootRank`."""
        opts = _options(opts, AllreduceOptions)
        if self._rank != opts.rootRank:
            return self.gather([], [input], opts)
        if output.numel() != input.numel() * self._size:
            raise RuntimeError(
                "gather_single(): expected an output of the input's size times the number of "
                f"ranks, {input.numel()} x {self._size} elements; got {output.numel()}"
            )
        copies = []
        filled = _to_fill(output, copies)
        if copies:
            opts.asyncOp = False
        parts = list(filled.detach().view(self._size, *input.shape).unbind(0))
        work = self.gather([parts], [input], opts)
        return Work(None, [output], copies) if copies else work

    gather_into_tensor = gather_single

    def scatter(self, output_tensors, input_tensors, opts=None):
        """Give each rank one of the tensors of rank `opts.rootRank`."""
        opts = _options(opts, AllreduceOptions)
        (output,) = output_tensors
        self._check_root("scatter", opts.rootRank)
        inputs = list(input_tensors[0]) if self._rank == opts.rootRank else []
        if self._rank == opts.rootRank:
            self._check_list("scatter", "input", inputs, output)
        if not self._has_data((output, *inputs)):
            return Work(result=[output])
        copies = []
        filled = _to_fill(output, copies)
        sent = [_to_send(t) for t in inputs]
        return self._run(
            _Call.SCATTER, sent, [filled], opts, opts.rootRank, copies, [output], shown=output
        )

    def reduce_scatter(self, output_tensors, input_tensors, opts=None):
        """Reduce lists of tensors, and give each rank one of the results."""
        opts = _options(opts, AllreduceOptions)
        (output,), (inputs,) = output_tensors, input_tensors
        self._check_list("reduce_scatter", "input", inputs, output)
        if not self._has_data((output, *inputs)):
            return Work(result=[output])
        copies = []
        filled = _to_fill(output, copies)
        sent = [_to_send(t) for t in inputs]
        return self._run(
            _Call.REDUCE_SCATTER, sent, [filled], opts, -1, copies, [output], shown=output
        )

    def _reduce_scatter_base(self, output, input, opts=None):
        opts = _options(opts, AllreduceOptions)
        if input.numel() != output.numel() * self._size:
            raise RuntimeError(
                "reduce_scatter_tensor(): expected an input of the output's size times the "
                f"number of ranks, {output.numel()} x {self._size} elements; got {input.numel()}"
            )
        if output.dtype != input.dtype:
            raise RuntimeError(
                f"reduce_scatter_tensor(): expected tensors of one dtype; got {output.dtype} "
                f"and {input.dtype}"
            )
        if not self._has_data((output, input)):
            return Work(result=[output])
        copies = []
        filled = _to_fill(output, copies)
        whole = _to_send(input).detach()
        parts = list(whole.view(self._size, -1).unbind(0)) if output.numel() else None
        parts = parts or [whole.view(-1)] * self._size
        flat = filled.detach().view(-1)
        return self._run(
            _Call.REDUCE_SCATTER, parts, [flat], opts, -1, copies, [output], shown=output
        )

    reduce_scatter_single = _reduce_scatter_base

    def reduce_scatter_tensor_coalesced(self, outputs, inputs, opts=None):
        """Reduce several tensors; each rank has its part of each."""
        return _Together(
            [self._reduce_scatter_base(o, i, opts) for o, i in zip(outputs, inputs, strict=False)]
        )

    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    def alltoall(self, output_tensors, input_tensors, opts=None):
        """Give rank i the i-th tensor of each rank."""
        opts = _options(opts, AllreduceOptions)
        for what, tensors in (("output", output_tensors), ("input", input_tensors)):
            if len(tensors) != self._size:
                raise RuntimeError(
                    f"all_to_all(): expected {self._size} {what} tensors; got {len(tensors)}"
                )
        if not self._has_data((*output_tensors, *input_tensors)):
            return Work(result=output_tensors)
        copies = []
        filled = [_to_fill(t, copies) for t in output_tensors]
        sent = [_to_send(t) for t in input_tensors]
        counts = [t.numel() for t in sent], [t.numel() for t in filled]
        return self._run(_Call.ALL_TO_ALL, sent, filled, opts, -1, copies, output_tensors, counts)

    def alltoall_base(self, output, input, output_split_sizes, input_split_sizes, opts=None):
        """Give rank i the i-th part of each rank's tensor."""
        opts = _options(opts, AllreduceOptions)
        received = self._split_sizes(output, output_split_sizes)
        sent = self._split_sizes(input, input_split_sizes)
        if not self._has_data((output, input)):
            return Work(result=[output])
        copies = []
        filled = _to_fill(output, copies).detach()
        outputs = list(filled.split(received)) if filled.dim() else [filled]
        whole = _to_send(input).detach()
        inputs = list(whole.split(sent)) if whole.dim() else [whole]
        counts = [t.numel() for t in inputs], [t.numel() for t in outputs]
        return self._run(
            _Call.ALL_TO_ALL, inputs, outputs, opts, -1, copies, [output], counts, shown=input
        )

    all_to_all_single = alltoall_base

    def _split_sizes(self, tensor, sizes):
        total = tensor.shape[0] if tensor.dim() else 1
        if not sizes:
            if total % self._size:
                raise RuntimeError(
                    f"all_to_all_single(): expected a first dimension that {self._size} ranks "
                    f"divide; got {total}"
                )
            return [total // self._size] * self._size
        if len(sizes) != self._size or sum(sizes) != total:
            raise RuntimeError(
                f"all_to_all_single(): expected {self._size} split sizes that add up to {total}; "
                f"got {list(sizes)}"
            )
        return list(sizes)

    def barrier(self, opts=None):
        """Wait until all ranks have come."""
        return self._run(_Call.BARRIER, [], [], _options(opts, AllreduceOptions))

    def send(self, tensors, dstRank, tag=0, _async=True):
        """Send a tensor to a rank."""
        (tensor,) = tensors
        if not self._has_data((tensor,)):
            return Work(result=[tensor])
        sent = _to_send(tensor)
        return _Message(self._core.message(True, sent, dstRank, tag, _async), [tensor])

    def recv(self, tensors, srcRank, tag=0, _async=True):
        """Fill a tensor with one that a rank sends."""
        (tensor,) = tensors
        if not self._has_data((tensor,)):
            return Work(result=[tensor])
        copies = []
        filled = _to_fill(tensor, copies)
        handle = self._core.message(False, filled, srcRank, tag, _async)
        message = _Message(handle, [tensor], copies)
        if not _async:
            message._copy_back()
        return message

    def recv_anysource(self, tensors, tag=0, _async=True):
        """Fill a tensor with one that any rank sends."""
        return self.recv(tensors, -1, tag, _async)

    def monitored_barrier(self, timeout=None, wait_all_ranks=False):
        """A barrier that names the ranks that do not come within a timeout.

        Raises:
            DistBackendError: some rank has not come.
        """
        limit = timeout or timedelta(minutes=30)
        one = facula.zeros(1, dtype=facula.uint8)
        if self._rank != 0:
            # Rank 0 is the one to say who is late, so the others wait a little longer.
            longer = limit + timedelta(seconds=2)
            self.send([one], 0, _BARRIER_TAG).wait(longer)
            self.recv([one], 0, _BARRIER_TAG).wait(longer)
            return
        works = [self.recv([one.clone()], r, _BARRIER_TAG) for r in range(1, self._size)]
        late = []
        for rank, work in enumerate(works, 1):
            try:
                work.wait(limit if not late else timedelta(milliseconds=10))
            except DistBackendError:
                late.append(rank)
                if not wait_all_ranks:
                    break
        if late:
            which = "rank " if len(late) == 1 else "ranks "
            text = (
                f"monitored_barrier(): expected all ranks within {milliseconds(limit)} ms; "
                f"{which}{', '.join(map(str, late))} did not come"
            )
            self._core.abort(text)
            raise DistBackendError(f"{text}\n{self._core.table()}")
        for rank in range(1, self._size):
            self.send([one], rank, _BARRIER_TAG).wait(limit)

    def abort(self):
        """Make all calls of the group fail, here and at the other ranks."""
        self._core.abort(f"rank {self._rank} aborted the group")

    def shutdown(self):
        """Take no part any more, after what was begun has ended."""
        if self._core is None or isinstance(self._core, _Closed):
            return
        self._core.leave("", True)
        # Whoever keeps the group (a mesh, say) does not keep its memory and files.
        self._core = _Closed(self._name)

    def set_timeout(self, timeout):
        """How long later calls wait for other ranks.

        Args:
            timeout (timedelta): the time.
        """
        self._core.set_timeout(milliseconds(timeout))

    _set_default_timeout = set_timeout

    def _check_root(self, call, root):
        if not 0 <= root < self._size:
            raise RuntimeError(f"{call}(): expected a root rank below {self._size}; got {root}")

    def _check_list(self, call, what, tensors, like):
        if len(tensors) != self._size:
            raise RuntimeError(
                f"{call}(): expected {self._size} {what} tensors, one for each rank; "
                f"got {len(tensors)}"
            )
        for i, tensor in enumerate(tensors):
            if tensor.shape != like.shape or tensor.dtype != like.dtype:
                raise RuntimeError(
                    f"{call}(): expected {what} tensors of {like.dtype} {list(like.shape)}; "
                    f"got {tensor.dtype} {list(tensor.shape)} at index {i}"
                )


_BARRIER_TAG = 0x6D6F6E  # messages of monitored_barrier meet no others


class _Together(Work):
    """Several works as one."""

    def __init__(self, works):
        super().__init__(result=[t for w in works for t in w.result()])
        self._works = works

    def wait(self, timeout=None):
        """Wait for all."""
        return all([w.wait(timeout) for w in self._works])

    def is_completed(self):
        """Whether all have ended."""
        return all(w.is_completed() for w in self._works)

    def exception(self):
        """The first error."""
        return next((e for e in (w.exception() for w in self._works) if e is not None), None)

    def get_future(self):
        """A future of all tensors."""
        done = facula.futures.collect_all([w.get_future() for w in self._works])
        return done.then(lambda f: [t for part in f.value() for t in part.value()])


def _options(opts, kind):
    if opts is None:
        return kind()
    if isinstance(opts, (ReduceOp, ReduceOp.RedOpType)):
        return kind(reduceOp=opts)
    if isinstance(opts, int):
        return kind(rootRank=opts)
    return opts


class ProcessGroupGloo(ProcessGroup):
    """Ranks of CPU tensors: through shared memory on one machine, else through Gloo."""


class ProcessGroupMPI(ProcessGroup):
    """Ranks that work together through MPI."""


def new_core(engine, rank, size, name, timeout, heartbeat, lag, settings):
    """A group of the core on one engine, not connected yet; times are in seconds or timedeltas."""
    times = (milliseconds(t) for t in (timeout, heartbeat, lag))
    return _distributed.Group(rank, size, name, engine, *times, settings)
