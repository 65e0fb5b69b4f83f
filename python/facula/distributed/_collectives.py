"""Collectives on tensors, and messages between two ranks."""

from __future__ import annotations

import contextlib
import functools
import sys
import warnings

import facula
from facula.distributed import _reduce_op as options
from facula.distributed._process_group import Work
from facula.distributed._reduce_op import ReduceOp, supports_complex
from facula.distributed._world import (
    _group_or_default,
    _rank_not_in_group,
    _warn_not_in_group,
    _world,
    get_group_rank,
)


def _name_of_caller():
    """The collective that checks an argument of its own."""
    return sys._getframe(2).f_code.co_name


def _check_tensor(value, name):
    if not isinstance(value, facula.Tensor):
        raise TypeError(
            f"{_name_of_caller()}(): expected a Tensor for the parameter {name}; got "
            f"{type(value).__name__}"
        )


def _check_tensors(values, name):
    if not isinstance(values, (list, tuple)) or not all(
        isinstance(v, facula.Tensor) for v in values
    ):
        raise TypeError(
            f"{_name_of_caller()}(): expected a list of Tensors for the parameter {name}; got "
            f"{values!r}"
        )


def _check_same_dtype(*tensors):
    flat = []
    for t in tensors:
        flat.extend(t if isinstance(t, (list, tuple)) else [t])
    if len({t.dtype for t in flat}) > 1:
        names = ", ".join(sorted({str(t.dtype) for t in flat}))
        raise ValueError(f"expected tensors of one dtype; got {names}")


def _outside(call):
    """Let a rank that is not in the group do nothing but warn."""

    @functools.wraps(call)
    def checked(*args, **kwargs):
        group = kwargs.get("group")
        if group is None:
            group = next((a for a in args if isinstance(a, int) and a == -100), None)
        if _rank_not_in_group(group):
            return _warn_not_in_group(call.__name__)
        return call(*args, **kwargs)

    return checked


def _end(work, async_op, group):
    """The work if it is asked for; else None, after its end."""
    scopes = _world.pg_coalesce_state
    together = scopes.get(group) if scopes else None
    if together is not None:
        together.append(work)
        return work if async_op else None
    if async_op:
        return work
    if work is not None:
        work.wait()
    return None


def _is_async(async_op, group):
    scopes = _world.pg_coalesce_state
    return async_op or bool(scopes and group in scopes)


def _root(group, rank, group_rank, name):
    """The rank in the group of an argument that gives it as a global one or as one of the group."""
    if group_rank is not None:
        if rank is not None:
            raise ValueError(f"expected {name} or group_{name}; got both")
        return group_rank
    if rank is None:
        raise ValueError(f"expected {name} or group_{name}; got neither")
    return get_group_rank(group, rank) if group is not _world.default_pg else rank


def _check_complex(call, tensor, op):
    if tensor.is_complex() and not supports_complex(op):
        raise ValueError(f"{call}(): expected a reduction of complex numbers; got {op}")


@_outside
def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduce a tensor over all ranks, in place, so that all have the same bits.

    Args:
        tensor (Tensor): any shape, strides and dtype; the same size and dtype at all ranks.
        op (ReduceOp): how.
        group (ProcessGroup): default all ranks.
        async_op (bool): return at once.

    Returns:
        Work if `async_op`, else None

    Raises:
        DistBackendError: ranks are lost, or call something else; the text has a table of them.

    Example:
        >>> import facula.distributed as dist
        >>> def work(rank):
        ...     x = facula.full((2,), float(rank))
        ...     dist.all_reduce(x, dist.ReduceOp.MAX)
        ...     return x
        >>> facula.distributed.threads.run(work, 2)[0]
        tensor([1., 1.])
    """
    if not isinstance(tensor, facula.Tensor):
        _check_tensor(tensor, "tensor")
    if tensor.is_complex():
        _check_complex("all_reduce", tensor, op)
    pg = _group_or_default(group)
    opts = options.AllreduceOptions()
    opts.reduceOp, opts.asyncOp = op, _is_async(async_op, pg)
    return _end(pg.allreduce([tensor], opts), async_op, pg)


@_outside
def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduce several tensors over all ranks, in place."""
    warnings.warn(
        "all_reduce_coalesced() is kept for old programs; all_reduce() takes one tensor at a time",
        FutureWarning,
        stacklevel=3,
    )
    tensors = [tensors] if isinstance(tensors, facula.Tensor) else tensors
    _check_tensors(tensors, "tensors")
    _check_same_dtype(tensors)
    for tensor in tensors:
        _check_complex("all_reduce_coalesced", tensor, op)
    pg = _group_or_default(group)
    opts = options.AllreduceCoalescedOptions(reduceOp=op)
    return _end(pg.allreduce_coalesced(list(tensors), opts), async_op, pg)


@_outside
def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    """Copy the tensor of one rank to all.

    Args:
        tensor (Tensor): what is sent by `src`, and filled at the others.
        src (int): a global rank.
        group (ProcessGroup): default all ranks.
        async_op (bool): return at once.
        group_src (int): a rank of the group, in place of `src`.

    Returns:
        Work if `async_op`, else None
    """
    _check_tensor(tensor, "tensor")
    pg = _group_or_default(group)
    opts = options.BroadcastOptions()
    opts.rootRank, opts.asyncOp = _root(pg, src, group_src, "src"), _is_async(async_op, pg)
    return _end(pg.broadcast([tensor], opts), async_op, pg)


@_outside
def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    """Reduce a tensor over all ranks, in place at one.

    Args:
        tensor (Tensor): the same size and dtype at all ranks.
        dst (int): the global rank that has the result.
        op (ReduceOp): how.
        group (ProcessGroup): default all ranks.
        async_op (bool): return at once.
        group_dst (int): a rank of the group, in place of `dst`.

    Returns:
        Work if `async_op`, else None
    """
    _check_tensor(tensor, "tensor")
    _check_complex("reduce", tensor, op)
    pg = _group_or_default(group)
    opts = options.ReduceOptions(reduceOp=op, rootRank=_root(pg, dst, group_dst, "dst"))
    opts.asyncOp = _is_async(async_op, pg)
    return _end(pg.reduce([tensor], opts), async_op, pg)


@_outside
def all_gather(tensor_list, tensor, group=None, async_op=False):
    """Collect the tensors of all ranks in a list.

    Args:
        tensor_list (list): a tensor for each rank, of the size and dtype of `tensor`.
        tensor (Tensor): what this rank gives.
        group (ProcessGroup): default all ranks.
        async_op (bool): return at once.

    Returns:
        Work if `async_op`, else None
    """
    _check_tensors(tensor_list, "tensor_list")
    _check_tensor(tensor, "tensor")
    _check_same_dtype(tensor_list, tensor)
    pg = _group_or_default(group)
    opts = options.AllgatherOptions(asyncOp=_is_async(async_op, pg))
    return _end(pg.allgather([tensor_list], [tensor], opts), async_op, pg)


@_outside
def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """Collect the tensors of all ranks in one, behind each other or stacked.

    Args:
        output_tensor (Tensor): the number of ranks times as large as `input_tensor`.
        input_tensor (Tensor): what this rank gives.
        group (ProcessGroup): default all ranks.
        async_op (bool): return at once.

    Returns:
        Work if `async_op`, else None
    """
    _check_tensor(input_tensor, "input_tensor")
    _check_tensor(output_tensor, "output_tensor")
    pg = _group_or_default(group)
    opts = options.AllgatherOptions(asyncOp=_is_async(async_op, pg))
    return _end(pg._allgather_base(output_tensor, input_tensor, opts), async_op, pg)


def all_gather_single(output_tensor, input_tensor, group=None, async_op=False):
    """Another name of `all_gather_into_tensor`."""
    return all_gather_into_tensor(output_tensor, input_tensor, group, async_op)


def _all_gather_base(output_tensor, input_tensor, group=None, async_op=False):
    """The name of old of all_gather_into_tensor."""
    return all_gather_into_tensor(output_tensor, input_tensor, group, async_op)


@_outside
def all_gather_coalesced(output_tensor_lists, input_tensor_list, group=None, async_op=False):
    """Collect several tensors of all ranks: a list for each rank."""
    warnings.warn(
        "all_gather_coalesced() is kept for old programs; all_gather() takes one tensor at a time",
        FutureWarning,
        stacklevel=3,
    )
    _check_tensors(input_tensor_list, "input_tensor_list")
    _check_same_dtype(input_tensor_list)
    if not isinstance(output_tensor_lists, list):
        raise TypeError("all_gather_coalesced(): expected a list of lists of tensors")
    for outputs in output_tensor_lists:
        _check_tensors(outputs, "output_tensor_lists")
        _check_same_dtype(outputs)
    pg = _group_or_default(group)
    return _end(pg.allgather_coalesced(output_tensor_lists, input_tensor_list), async_op, pg)


def _is_root(pg, root):
    return pg.rank() == root


def _check_root_list(call, name, tensors, is_root, where):
    if is_root and not tensors:
        raise ValueError(f"{call}(): expected {name} at the {where} rank; got none")
    if not is_root and tensors:
        raise ValueError(f"{call}(): expected no {name} but at the {where} rank")


@_outside
def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    """Collect the tensors of all ranks at one.

    Args:
        tensor (Tensor): what this rank gives.
        gather_list (list): at `dst` a tensor for each rank; None elsewhere.
        dst (int): a global rank; default 0.
        group (ProcessGroup): default all ranks.
        async_op (bool): return at once.
        group_dst (int): a rank of the group, in place of `dst`.

    Returns:
        Work if `async_op`, else None
    """
    _check_tensor(tensor, "tensor")
    gather_list = gather_list or []
    _check_tensors(gather_list, "gather_list")
    _check_same_dtype(tensor, gather_list)
    pg = _group_or_default(group)
    dst = 0 if dst is None and group_dst is None else dst
    root = _root(pg, dst, group_dst, "dst")
    _check_root_list("gather", "gather_list", gather_list, _is_root(pg, root), "destination")
    opts = options.GatherOptions(rootRank=root, asyncOp=_is_async(async_op, pg))
    outputs = [gather_list] if _is_root(pg, root) else []
    return _end(pg.gather(outputs, [tensor], opts), async_op, pg)


@_outside
def gather_single(tensor, gather_tensor=None, dst=None, group=None, async_op=False, group_dst=None):
    """Collect the tensors of all ranks in one tensor at one rank.

    Args:
        tensor (Tensor): what this rank gives.
        gather_tensor (Tensor): at `dst` the number of ranks times as large; None elsewhere.
        dst (int): a global rank; default 0.
        group (ProcessGroup): default all ranks.
        async_op (bool): return at once.
        group_dst (int): a rank of the group, in place of `dst`.

    Returns:
        Work if `async_op`, else None
    """
    _check_tensor(tensor, "tensor")
    pg = _group_or_default(group)
    dst = 0 if dst is None and group_dst is None else dst
    root = _root(pg, dst, group_dst, "dst")
    if _is_root(pg, root):
        _check_tensor(gather_tensor, "gather_tensor")
        _check_same_dtype(tensor, gather_tensor)
    opts = options.GatherOptions(rootRank=root, asyncOp=_is_async(async_op, pg))
    return _end(pg.gather_single(gather_tensor, tensor, opts), async_op, pg)


def gather_into_tensor(
    tensor, gather_tensor=None, dst=None, group=None, async_op=False, group_dst=None
):
    """Another name of `gather_single`."""
    return gather_single(tensor, gather_tensor, dst, group, async_op, group_dst)


@_outside
def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    """Give each rank one of the tensors of one rank.

    Args:
        tensor (Tensor): what this rank receives.
        scatter_list (list): at `src` a tensor for each rank; None elsewhere.
        src (int): a global rank; default 0.
        group (ProcessGroup): default all ranks.
        async_op (bool): return at once.
        group_src (int): a rank of the group, in place of `src`.

    Returns:
        Work if `async_op`, else None
    """
    _check_tensor(tensor, "tensor")
    scatter_list = scatter_list or []
    _check_tensors(scatter_list, "scatter_list")
    _check_same_dtype(tensor, scatter_list)
    pg = _group_or_default(group)
    src = 0 if src is None and group_src is None else src
    root = _root(pg, src, group_src, "src")
    _check_root_list("scatter", "scatter_list", scatter_list, _is_root(pg, root), "source")
    opts = options.ScatterOptions(rootRank=root, asyncOp=_is_async(async_op, pg))
    inputs = [scatter_list] if _is_root(pg, root) else []
    return _end(pg.scatter([tensor], inputs, opts), async_op, pg)


@_outside
def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduce lists of tensors; rank i has the i-th result.

    Args:
        output (Tensor): what this rank receives.
        input_list (list): a tensor for each rank, of the size and dtype of `output`.
        op (ReduceOp): how.
        group (ProcessGroup): default all ranks.
        async_op (bool): return at once.

    Returns:
        Work if `async_op`, else None
    """
    _check_tensor(output, "output")
    _check_tensors(input_list, "input_list")
    _check_same_dtype(output, input_list)
    _check_complex("reduce_scatter", output, op)
    pg = _group_or_default(group)
    opts = options.ReduceScatterOptions(reduceOp=op, asyncOp=_is_async(async_op, pg))
    return _end(pg.reduce_scatter([output], [input_list], opts), async_op, pg)


@_outside
def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduce a tensor over all ranks; rank i has the i-th part of the result.

    Args:
        output (Tensor): what this rank receives.
        input (Tensor): the number of ranks times as large as `output`.
        op (ReduceOp): how.
        group (ProcessGroup): default all ranks.
        async_op (bool): return at once.

    Returns:
        Work if `async_op`, else None
    """
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    _check_complex("reduce_scatter_tensor", output, op)
    pg = _group_or_default(group)
    opts = options.ReduceScatterOptions(reduceOp=op, asyncOp=_is_async(async_op, pg))
    return _end(pg._reduce_scatter_base(output, input, opts), async_op, pg)


def reduce_scatter_single(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """Another name of `reduce_scatter_tensor`."""
    return reduce_scatter_tensor(output, input, op, group, async_op)


def _reduce_scatter_base(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """The name of old of reduce_scatter_tensor."""
    return reduce_scatter_tensor(output, input, op, group, async_op)


@_outside
def all_to_all_single(
    output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False
):
    """Give rank i the i-th part of each rank's tensor, along the first dimension.

    Args:
        output (Tensor): the parts of all ranks for this one.
        input (Tensor): the parts of this rank for all.
        output_split_sizes (list of int): sizes of the parts; default equal.
        input_split_sizes (list of int): likewise.
        group (ProcessGroup): default all ranks.
        async_op (bool): return at once.

    Returns:
        Work if `async_op`, else None
    """
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    _check_same_dtype(output, input)
    pg = _group_or_default(group)
    opts = options.AllToAllOptions(asyncOp=_is_async(async_op, pg))
    work = pg.alltoall_base(output, input, output_split_sizes or [], input_split_sizes or [], opts)
    return _end(work, async_op, pg)


@_outside
def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """Give rank i the i-th tensor of each rank.

    Args:
        output_tensor_list (list): a tensor for each rank, to be filled.
        input_tensor_list (list): a tensor for each rank.
        group (ProcessGroup): default all ranks.
        async_op (bool): return at once.

    Returns:
        Work if `async_op`, else None
    """
    _check_tensors(output_tensor_list, "output_tensor_list")
    _check_tensors(input_tensor_list, "input_tensor_list")
    _check_same_dtype(output_tensor_list, input_tensor_list)
    pg = _group_or_default(group)
    opts = options.AllToAllOptions(asyncOp=_is_async(async_op, pg))
    return _end(pg.alltoall(output_tensor_list, input_tensor_list, opts), async_op, pg)


@_outside
def barrier(group=None, async_op=False, device_ids=None, timeout=None):
    """Wait until all ranks have come.

    Args:
        group (ProcessGroup): default all ranks.
        async_op (bool): return at once.
        device_ids (list of int): the accelerator of this process; without effect on the CPU.
        timeout (timedelta): how long to wait; default that of the group.

    Returns:
        Work if `async_op`, else None
    """
    pg = _group_or_default(group)
    opts = options.BarrierOptions(asyncOp=_is_async(async_op, pg), device_ids=device_ids or ())
    if timeout is not None and not async_op:
        opts.asyncOp = True
        pg.barrier(opts).wait(timeout)
        return None
    return _end(pg.barrier(opts), async_op, pg)


@_outside
def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """A barrier that names the ranks that do not come.

    Args:
        group (ProcessGroup): default all ranks.
        timeout (timedelta): how long to wait for them.
        wait_all_ranks (bool): name all of them, not only the first.

    Raises:
        DistBackendError: some rank has not come.
    """
    _group_or_default(group).monitored_barrier(timeout, wait_all_ranks)


# --- messages


def _check_not_self(pg, rank, name):
    if rank == pg.rank():
        raise ValueError(f"Invalid {name} rank: {name} rank should not be the rank of this process")


@_outside
def isend(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Begin to send a tensor to a rank.

    Args:
        tensor (Tensor): must not change until the work has ended.
        dst (int): a global rank.
        group (ProcessGroup): default all ranks.
        tag (int): only a receive with the same one takes the message.
        group_dst (int): a rank of the group, in place of `dst`.

    Returns:
        Work
    """
    _check_tensor(tensor, "tensor")
    pg = _group_or_default(group)
    to = _root(pg, dst, group_dst, "dst")
    _check_not_self(pg, to, "destination")
    work = pg.send([tensor], to, tag)
    return _end(work, True, pg)


@_outside
def irecv(tensor, src=None, group=None, tag=0, group_src=None):
    """Begin to receive a tensor.

    Args:
        tensor (Tensor): is filled.
        src (int): a global rank; default any.
        group (ProcessGroup): default all ranks.
        tag (int): only a message with the same one is taken.
        group_src (int): a rank of the group, in place of `src`.

    Returns:
        Work
    """
    _check_tensor(tensor, "tensor")
    pg = _group_or_default(group)
    if src is None and group_src is None:
        return _end(pg.recv_anysource([tensor], tag), True, pg)
    origin = _root(pg, src, group_src, "src")
    _check_not_self(pg, origin, "source")
    return _end(pg.recv([tensor], origin, tag), True, pg)


@_outside
def send(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Send a tensor to a rank, and wait until it is on its way.

    Args:
        tensor (Tensor): what is sent.
        dst (int): a global rank.
        group (ProcessGroup): default all ranks.
        tag (int): only a receive with the same one takes the message.
        group_dst (int): a rank of the group, in place of `dst`.
    """
    _check_tensor(tensor, "tensor")
    pg = _group_or_default(group)
    to = _root(pg, dst, group_dst, "dst")
    _check_not_self(pg, to, "destination")
    if _is_async(False, pg) or not _has_own_messages(pg):
        return _end(pg.send([tensor], to, tag), False, pg)
    pg.send([tensor], to, tag, _async=False)
    return None


@_outside
def recv(tensor, src=None, group=None, tag=0, group_src=None):
    """Receive a tensor.

    Args:
        tensor (Tensor): is filled.
        src (int): a global rank; default any.
        group (ProcessGroup): default all ranks.
        tag (int): only a message with the same one is taken.
        group_src (int): a rank of the group, in place of `src`.

    Returns:
        int: the global rank that it came from
    """
    _check_tensor(tensor, "tensor")
    pg = _group_or_default(group)
    origin = -1 if src is None and group_src is None else _root(pg, src, group_src, "src")
    _check_not_self(pg, origin, "source")
    if _has_own_messages(pg):
        work = pg.recv([tensor], origin, tag, _async=False)
    else:
        work = pg.recv_anysource([tensor], tag) if origin < 0 else pg.recv([tensor], origin, tag)
        work.wait()
    found = work._source_rank() if origin < 0 else origin
    ranks = _world.pg_group_ranks.get(pg, {})
    return next((whole for whole, part in ranks.items() if part == found), found)


def _has_own_messages(pg):
    """Whether a group is one of ours, and not of a class that replaces its methods."""
    return getattr(pg, "_core", None) is not None


class P2POp:
    """A message for `batch_isend_irecv`.

    Args:
        op (callable): isend or irecv.
        tensor (Tensor): what is sent or filled.
        peer (int): a global rank.
        group (ProcessGroup): default all ranks.
        tag (int): see `isend`.
        group_peer (int): a rank of the group, in place of `peer`.
    """

    def __init__(self, op, tensor, peer=None, group=None, tag=0, group_peer=None):
        if op not in (isend, irecv):
            raise ValueError(f"P2POp(): expected isend or irecv; got {op!r}")
        _check_tensor(tensor, "tensor")
        self.op, self.tensor, self.tag = op, tensor, tag
        self.group = _group_or_default(group)
        self.group_peer = _root(self.group, peer, group_peer, "peer")
        ranks = _world.pg_group_ranks.get(self.group, {})
        self.peer = next((w for w, p in ranks.items() if p == self.group_peer), self.group_peer)

    def __new__(cls, op, tensor, peer=None, group=None, tag=0, group_peer=None):
        return super().__new__(cls)

    def __repr__(self):
        return f"P2POp({self.op.__name__} rank {self.peer}, {list(self.tensor.shape)})"


def batch_isend_irecv(p2p_op_list):
    """Begin several messages.

    Args:
        p2p_op_list (list of P2POp): the messages, of one group.

    Returns:
        list of Work: one for each, or one for all where the backend does them together
    """
    ops = list(p2p_op_list)
    if not all(isinstance(op, P2POp) for op in ops):
        raise ValueError("batch_isend_irecv(): expected a list of P2POp objects")
    group = ops[0].group
    if any(op.group is not group for op in ops):
        raise ValueError("batch_isend_irecv(): expected messages of one group; got several")

    def begin():
        return [
            op.op(op.tensor, group=op.group, tag=op.tag, **{_PEER[op.op]: op.group_peer})
            for op in ops
        ]

    device = ops[0].tensor.device
    if not group._get_backend(device).supports_coalescing:
        return begin()
    with _coalescing_manager(group, device, async_ops=True) as manager:
        begin()
    return manager.works


_PEER = {isend: "group_dst", irecv: "group_src"}


class _CoalescingManager:
    """The works of a scope."""

    def __init__(self):
        self.works = []

    def append(self, work):
        """Add a work."""
        if work is not None:
            self.works.append(work)

    def wait(self):
        """Wait for all."""
        for work in self.works:
            work.wait()


@contextlib.contextmanager
def _coalescing_manager(group=None, device=None, async_ops=False):
    """Begin the collectives of a scope without waiting for each; they have ended after it.

    Args:
        group (ProcessGroup): whose collectives.
        device (device): of the tensors; where its backend can, it does all of them together.
        async_ops (bool): leave waiting to the caller.
    """
    pg = _group_or_default(group)
    if pg in _world.pg_coalesce_state:
        raise ValueError("expected no scope of coalesced collectives within another")
    backend = pg._get_backend(device) if device or pg.supports_coalescing else None
    together = backend is not None and backend.supports_coalescing
    manager = _CoalescingManager()
    if together:
        backend._start_coalescing(device)
    _world.pg_coalesce_state[pg] = manager
    try:
        yield manager
    except BaseException:
        if together:
            backend._forget_coalescing()
        raise
    finally:
        del _world.pg_coalesce_state[pg]
    if together:
        manager.works = [backend._end_coalescing(device, async_ops)]
    if not async_ops:
        manager.wait()


__all__ = [
    "P2POp",
    "Work",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "gather",
    "gather_into_tensor",
    "gather_single",
    "irecv",
    "isend",
    "monitored_barrier",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
    "send",
]
