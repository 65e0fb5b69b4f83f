"""Context parallelism: each rank has some positions of the sequences, and attends to all.

Keys and values go round the ranks, or are gathered at once. Each rank attends to one block after
the other and joins the results by their log-sum-exp (ring attention, Liu et al., 2023). Where
attention is causal, a rank has a piece of the beginning and one of the end, so that all have equal
work.
"""

from __future__ import annotations

import contextlib
import enum
from dataclasses import dataclass

import facula
from facula.distributed import _waited_collectives as collectives
from facula.nn import functional
from facula.overrides import TorchFunctionMode


class _RotateMethod(enum.Enum):
    ALL_TO_ALL = enum.auto()
    ALL_GATHER = enum.auto()


@dataclass
class _ContextParallelOptions:
    convert_to_f32: bool = True
    enable_load_balance: bool = True
    rotate_method: _RotateMethod = _RotateMethod.ALL_GATHER


_cp_options = _ContextParallelOptions()


def set_rotate_method(rotate_method):
    """Set how keys and values reach other ranks.

    Args:
        rotate_method (str): "allgather", at once, or "alltoall", from neighbour to neighbour, which
            needs the memory of two blocks only.

    Raises:
        NotImplementedError: another method.
    """
    methods = {"allgather": _RotateMethod.ALL_GATHER, "alltoall": _RotateMethod.ALL_TO_ALL}
    if rotate_method not in methods:
        raise NotImplementedError(
            f"set_rotate_method(): expected 'allgather' or 'alltoall'; got {rotate_method!r}"
        )
    _cp_options.rotate_method = methods[rotate_method]


# --- who has which positions


class _HeadTailLoadBalancer:
    """Positions in the order in which ranks have them: a piece from the front, one from the back.

    Args:
        seq_length (int): the number of positions.
        world_size (int): the number of ranks.
        device (device): of the indices.
    """

    def __init__(self, seq_length, world_size, device):
        if seq_length % (2 * world_size):
            raise AssertionError(
                f"context_parallel(): expected a sequence that {2 * world_size} pieces divide; "
                f"got {seq_length}"
            )
        self.seq_length, self.world_size, self.device = seq_length, world_size, device

    def _generate_indices(self, restore=False):
        pieces = facula.arange(self.seq_length, device=self.device).chunk(2 * self.world_size)
        order = [p for r in range(self.world_size) for p in (pieces[r], pieces[-1 - r])]
        indices = facula.cat(order)
        return (indices.argsort() if restore else indices).unsqueeze(0)


def _balancer_for(length, mesh, device):
    if not _cp_options.enable_load_balance or mesh.size() == 1:
        return None
    return _HeadTailLoadBalancer(length, mesh.size(), device)


def _part_of_sequence(buffer, dim, mesh, balancer):
    length, count = buffer.shape[dim], mesh.size()
    if length % count:
        raise ValueError(
            f"context_parallel(): expected a sequence that {count} ranks divide; got {length}"
        )
    if balancer is not None:
        buffer = buffer.index_select(dim, balancer._generate_indices()[0])
    return buffer.chunk(count, dim)[mesh.get_local_rank()].contiguous()


def _context_parallel_shard(mesh, buffers, seq_dims, load_balancer=None):
    """This rank's positions of tensors.

    Args:
        mesh (DeviceMesh): of one dimension.
        buffers (sequence of Tensor): the whole, at all ranks.
        seq_dims (sequence of int): which dimension of each is that of positions.
        load_balancer (_HeadTailLoadBalancer): default by the options.

    Returns:
        list of Tensor
    """
    if len(buffers) != len(seq_dims):
        raise ValueError(
            f"context_parallel(): expected a dimension for each of {len(buffers)} tensors; "
            f"got {len(seq_dims)}"
        )
    return [
        _part_of_sequence(b, d, mesh, load_balancer or _balancer_for(b.shape[d], mesh, b.device))
        for b, d in zip(buffers, seq_dims, strict=True)
    ]


def context_parallel_unshard(mesh, buffers, seq_dims, load_balancer=None):
    """The whole tensors of which all ranks have some positions.

    Args:
        mesh (DeviceMesh): of one dimension.
        buffers (list of Tensor): this rank's parts.
        seq_dims (list of int): which dimension of each is that of positions.
        load_balancer (_HeadTailLoadBalancer): as they were cut; default by the options.

    Returns:
        list of Tensor
    """
    wholes = []
    for buffer, dim in zip(buffers, seq_dims, strict=True):
        whole = collectives.all_gather_tensor(buffer.contiguous(), dim, (mesh, 0))
        balancer = load_balancer or _balancer_for(whole.shape[dim], mesh, whole.device)
        if balancer is not None:
            whole = whole.index_select(dim, balancer._generate_indices(restore=True)[0])
        wholes.append(whole)
    return wholes


# --- attention to blocks


def _blocks(mesh, key, value):
    """(rank, key, value) of all ranks, this one's first."""
    count, rank = mesh.size(), mesh.get_local_rank()
    if _cp_options.rotate_method is _RotateMethod.ALL_GATHER:
        both = facula.stack([key, value]).unsqueeze(0)
        everyones = collectives.all_gather_tensor(both, 0, (mesh, 0))
        for step in range(count):
            j = (rank - step) % count
            yield j, everyones[j, 0], everyones[j, 1]
        return
    both = facula.stack([key, value])
    for step in range(count):
        yield (rank - step) % count, both[0], both[1]
        if step + 1 < count:
            both = _from_neighbour(both, mesh)


def _from_neighbour(tensor, mesh):
    count = mesh.size()
    next_ranks = [(r + 1) % count for r in range(count)]
    return collectives.permute_tensor(tensor.contiguous(), next_ranks, (mesh, 0))


class _Pieces:
    """The pieces of the sequence that ranks have, by their places in it."""

    def __init__(self, mesh, is_causal):
        self.count, self.is_causal = mesh.size(), is_causal
        balanced = _cp_options.enable_load_balance and self.count > 1
        # If all see all, the order does not matter, and there is nothing to leave out.
        self.each = 2 if is_causal and balanced else 1

    def places(self, rank):
        return [rank, 2 * self.count - 1 - rank][: self.each]

    def cut(self, tensor):
        return tensor.chunk(self.each, 2)

    def pairs(self, rank, other):
        """(own piece, other's piece, whether they are the same) that see each other."""
        for i, own in enumerate(self.places(rank)):
            for j, theirs in enumerate(self.places(other)):
                if not self.is_causal or theirs <= own:
                    yield i, j, self.is_causal and theirs == own


def _joined(result, more):
    """Attention to two sets of keys, from that to each and its log-sum-exp."""
    if result is None:
        return more
    (out, lse), (other, other_lse) = result, more
    total = facula.logaddexp(lse, other_lse)
    weights = [(x - total).exp().unsqueeze(-1) for x in (lse, other_lse)]
    return out * weights[0] + other * weights[1], total


class _RingAttention(facula.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value, mesh, is_causal, scale):
        attend = facula.ops.aten._scaled_dot_product_flash_attention_for_cpu
        pieces, rank = _Pieces(mesh, is_causal), mesh.get_local_rank()
        queries = pieces.cut(query)
        results = [None] * pieces.each
        for other, k, v in _blocks(mesh, key, value):
            ks, vs = pieces.cut(k), pieces.cut(v)
            for i, j, same in pieces.pairs(rank, other):
                out, lse = attend(queries[i], ks[j], vs[j], 0.0, same, scale=scale)
                if _cp_options.convert_to_f32:
                    out = out.float() if out.dtype.itemsize < 4 else out
                results[i] = _joined(results[i], (out, lse))
        out = facula.cat([r[0] for r in results], 2).to(query.dtype)
        lse = facula.cat([r[1] for r in results], 2)
        ctx.save_for_backward(query, key, value, out, lse)
        ctx.mesh, ctx.pieces, ctx.scale = mesh, pieces, scale
        return out

    @staticmethod
    def backward(ctx, grad):
        query, key, value, out, lse = ctx.saved_tensors
        differentiate = facula.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
        mesh, pieces, rank = ctx.mesh, ctx.pieces, ctx.mesh.get_local_rank()
        qs, outs, lses, grads = (pieces.cut(t) for t in (query, out, lse, grad.contiguous()))
        wide = facula.float32 if query.dtype.itemsize < 4 else query.dtype
        grad_query = [facula.zeros_like(q, dtype=wide) for q in qs]
        back = _GradientsOfBlocks(mesh, key, wide)
        for other, k, v in _blocks(mesh, key, value):
            ks, vs = pieces.cut(k), pieces.cut(v)
            own = back.of(other)
            grad_key, grad_value = pieces.cut(own[0]), pieces.cut(own[1])
            for i, j, same in pieces.pairs(rank, other):
                dq, dk, dv = differentiate(
                    grads[i], qs[i], ks[j], vs[j], outs[i], lses[i], 0.0, same, scale=ctx.scale
                )
                grad_query[i] += dq
                grad_key[j].add_(dk)
                grad_value[j].add_(dv)
            back.done()
        grad_key, grad_value = back.own()
        found = [facula.cat(grad_query, 2), grad_key, grad_value]
        return *(g.to(query.dtype) for g in found), None, None, None


class _GradientsOfBlocks:
    """Sums of gradients of keys and values, which belong to other ranks: they go back there."""

    def __init__(self, mesh, key, dtype):
        self.mesh = mesh
        self.gathers = _cp_options.rotate_method is _RotateMethod.ALL_GATHER
        count = mesh.size() if self.gathers else 1
        self.sums = facula.zeros((count, 2, *key.shape), dtype=dtype)

    def of(self, rank):
        return self.sums[rank if self.gathers else 0]

    def done(self):
        # What goes round has been everywhere after as many steps as there are ranks.
        if not self.gathers:
            self.sums = _from_neighbour(self.sums, self.mesh)

    def own(self):
        if not self.gathers:
            return self.sums[0]
        return collectives.reduce_scatter_tensor(self.sums, "sum", 0, (self.mesh, 0))[0]


class _AttentionOfAll(TorchFunctionMode):
    """Has scaled_dot_product_attention attend to the positions of all ranks."""

    def __init__(self, mesh):
        super().__init__()
        self.mesh = mesh

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is functional.scaled_dot_product_attention:
            return self._attend(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))

    def _attend(
        self,
        query,
        key,
        value,
        attn_mask=None,
        dropout_p=0.0,
        is_causal=False,
        scale=None,
        enable_gqa=False,
    ):
        if attn_mask is not None or dropout_p:
            raise NotImplementedError(
                "scaled_dot_product_attention(): expected neither mask nor dropout within "
                f"context_parallel; got attn_mask={attn_mask}, dropout_p={dropout_p}"
            )
        if enable_gqa and key.shape[1] != query.shape[1]:
            times = query.shape[1] // key.shape[1]
            key, value = (t.repeat_interleave(times, 1) for t in (key, value))
        return _RingAttention.apply(query, key, value, self.mesh, is_causal, scale)


@contextlib.contextmanager
def context_parallel(mesh, *, buffers=None, buffer_seq_dims=None, no_restore_buffers=None):
    """Within it, buffers hold this rank's positions, and attention is to those of all ranks.

    Args:
        mesh (DeviceMesh): of one dimension.
        buffers (list of Tensor): whole tensors, the same at all ranks: inputs, targets, embeddings
            of positions ...; changed in place, and restored afterwards.
        buffer_seq_dims (list of int): which dimension of each is that of positions.
        no_restore_buffers (set of Tensor): those that need not be restored.

    Raises:
        ValueError: there is not a dimension for each buffer, or ranks do not divide it.

    Example:
        >>> def work(rank):
        ...     mesh = facula.distributed.init_device_mesh("cpu", (2,))
        ...     x = facula.arange(4.0).view(1, 1, 4, 1)
        ...     with context_parallel(mesh, buffers=[x], buffer_seq_dims=[2]):
        ...         return facula.nn.functional.scaled_dot_product_attention(0 * x, x, x).flatten()
        >>> facula.distributed.threads.run(work, 2)
        [tensor([1.5000, 1.5000]), tensor([1.5000, 1.5000])]
    """
    if mesh.ndim != 1:
        raise ValueError(f"context_parallel(): expected a mesh of one dimension; got {mesh.ndim}")
    buffers = list(buffers or [])
    kept = {id(b) for b in no_restore_buffers or ()}
    if not kept <= {id(b) for b in buffers}:
        raise ValueError("context_parallel(): expected no_restore_buffers among the buffers")
    parts = _context_parallel_shard(mesh, buffers, list(buffer_seq_dims or []))
    with facula.no_grad():
        wholes = [None if id(b) in kept else b.detach().clone() for b in buffers]
        for buffer, part in zip(buffers, parts, strict=True):
            _replace(buffer, part)
    try:
        with _AttentionOfAll(mesh):
            yield
    finally:
        with facula.no_grad():
            for buffer, whole in zip(buffers, wholes, strict=True):
                if whole is not None:
                    _replace(buffer, whole)


def _replace(buffer, values):
    buffer.resize_(values.shape)
    buffer.copy_(values)
