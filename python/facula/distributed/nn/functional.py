"""Collectives with derivatives: each gives new tensors, and its gradient is a collective too."""

from __future__ import annotations

import facula
from facula.autograd import Function
from facula.distributed import _collectives as collectives
from facula.distributed._reduce_op import ReduceOp
from facula.distributed._world import get_rank, get_world_size


class _Broadcast(Function):
    @staticmethod
    def forward(ctx, src, group, tensor):
        ctx.src, ctx.group = src, group
        result = tensor.detach().clone()
        collectives.broadcast(result, src, group=group)
        return result

    @staticmethod
    def backward(ctx, grad):
        total = _Reduce.apply(ctx.src, ReduceOp.SUM, ctx.group, grad)
        return None, None, total if get_rank() == ctx.src else facula.zeros_like(total)


class _Reduce(Function):
    @staticmethod
    def forward(ctx, dst, op, group, tensor):
        ctx.dst, ctx.group = dst, group
        result = tensor.detach().clone()
        collectives.reduce(result, dst, op, group=group)
        return result

    @staticmethod
    def backward(ctx, grad):
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, grad)


class _AllReduce(Function):
    @staticmethod
    def forward(ctx, op, group, tensor):
        ctx.op, ctx.group = op, group
        result = tensor.detach().clone()
        collectives.all_reduce(result, op, group=group)
        return result

    @staticmethod
    def backward(ctx, grad):
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grad)


class _Gather(Function):
    @staticmethod
    def forward(ctx, dst, group, tensor):
        ctx.dst, ctx.group = dst, group
        parts = [facula.zeros_like(tensor) for _ in range(get_world_size(group))]
        is_dst = get_rank() == dst
        collectives.gather(tensor.contiguous(), parts if is_dst else None, dst, group=group)
        return tuple(parts)

    @staticmethod
    def backward(ctx, *grads):
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx, src, group, *tensors):
        ctx.src, ctx.group = src, group
        result = facula.zeros_like(tensors[0])
        parts = [t.contiguous() for t in tensors] if get_rank() == src else None
        collectives.scatter(result, parts, src, group=group)
        return result

    @staticmethod
    def backward(ctx, grad):
        return (None, None, *_Gather.apply(ctx.src, ctx.group, grad))


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx, op, group, like, *tensors):
        ctx.group = group
        result = facula.empty_like(like)
        collectives.reduce_scatter(result, [t.contiguous() for t in tensors], op, group=group)
        return result

    @staticmethod
    def backward(ctx, grad):
        return (None, None, None, *_AllGather.apply(ctx.group, grad))


class _AllGather(Function):
    @staticmethod
    def forward(ctx, group, tensor):
        ctx.group = group
        parts = [facula.empty_like(tensor) for _ in range(get_world_size(group))]
        collectives.all_gather(parts, tensor.contiguous(), group=group)
        return tuple(parts)

    @staticmethod
    def backward(ctx, *grads):
        total = _ReduceScatter.apply(ReduceOp.SUM, ctx.group, grads[0], *grads)
        return None, total


class _AllToAll(Function):
    @staticmethod
    def forward(ctx, group, outputs, *tensors):
        ctx.group, ctx.shapes = group, [t.shape for t in tensors]
        results = [facula.empty_like(t) for t in outputs]
        collectives.all_to_all(results, [t.contiguous() for t in tensors], group=group)
        return tuple(results)

    @staticmethod
    def backward(ctx, *grads):
        like = [grads[0].new_empty(shape) for shape in ctx.shapes]
        return (None, None, *_AllToAll.apply(ctx.group, like, *grads))


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx, group, output, received, sent, tensor):
        ctx.group, ctx.shape, ctx.received, ctx.sent = group, tensor.shape, received, sent
        result = facula.empty_like(output)
        collectives.all_to_all_single(result, tensor.contiguous(), received, sent, group=group)
        return result

    @staticmethod
    def backward(ctx, grad):
        like = grad.new_empty(ctx.shape)
        back = _AllToAllSingle.apply(ctx.group, like, ctx.sent, ctx.received, grad)
        return None, None, None, None, back


def broadcast(tensor, src, group=None):
    """The tensor of one rank, at all.

    Args:
        tensor (Tensor): the same size and dtype at all ranks.
        src (int): whose tensor.
        group (ProcessGroup): default all ranks.

    Returns:
        Tensor: its gradients are added up at `src`
    """
    return _Broadcast.apply(src, group, tensor)


def gather(tensor, dst=0, group=None):
    """The tensors of all ranks, at one.

    Args:
        tensor (Tensor): the same size and dtype at all ranks.
        dst (int): who receives.
        group (ProcessGroup): default all ranks.

    Returns:
        tuple of Tensor: zeros but at `dst`
    """
    return _Gather.apply(dst, group, tensor)


def scatter(tensors, src=0, group=None):
    """One of the tensors of one rank, at each.

    Args:
        tensors (list of Tensor): one for each rank; those of `src` count.
        src (int): whose tensors.
        group (ProcessGroup): default all ranks.

    Returns:
        Tensor
    """
    return _Scatter.apply(src, group, *tensors)


def reduce(tensor, dst, op=ReduceOp.SUM, group=None):
    """The reduction of a tensor, at one rank.

    Args:
        tensor (Tensor): the same size and dtype at all ranks.
        dst (int): who receives.
        op (ReduceOp): how.
        group (ProcessGroup): default all ranks.

    Returns:
        Tensor: this rank's own but at `dst`
    """
    return _Reduce.apply(dst, op, group, tensor)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None):
    """The reduction of lists of tensors: rank i has the i-th.

    Args:
        output (Tensor): of the size of the result.
        input_list (list of Tensor): one for each rank.
        op (ReduceOp): how.
        group (ProcessGroup): default all ranks.

    Returns:
        Tensor
    """
    return _ReduceScatter.apply(op, group, output, *input_list)


def all_gather(tensor, group=None):
    """The tensors of all ranks.

    Args:
        tensor (Tensor): the same size and dtype at all ranks.
        group (ProcessGroup): default all ranks.

    Returns:
        tuple of Tensor
    """
    return _AllGather.apply(group, tensor)


def _all_gather_base(output_tensor, input_tensor, group=None):
    """The tensors of all ranks in one, as large as `output_tensor`."""
    return facula.cat(all_gather(input_tensor, group)).view(output_tensor.shape)


def all_to_all(output_tensor_list, input_tensor_list, group=None):
    """The tensors of all ranks for this one.

    Args:
        output_tensor_list (list of Tensor): of the sizes of the results.
        input_tensor_list (list of Tensor): one for each rank.
        group (ProcessGroup): default all ranks.

    Returns:
        tuple of Tensor
    """
    return _AllToAll.apply(group, output_tensor_list, *input_tensor_list)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None):
    """The parts of all ranks' tensors for this one, along the first dimension.

    Args:
        output (Tensor): of the size of the result.
        input (Tensor): the parts of this rank.
        output_split_sizes (list of int): sizes of the parts; default equal.
        input_split_sizes (list of int): likewise.
        group (ProcessGroup): default all ranks.

    Returns:
        Tensor
    """
    return _AllToAllSingle.apply(group, output, output_split_sizes, input_split_sizes, input)


def all_reduce(tensor, op=ReduceOp.SUM, group=None):
    """The reduction of a tensor, at all ranks.

    Args:
        tensor (Tensor): the same size and dtype at all ranks.
        op (ReduceOp): how.
        group (ProcessGroup): default all ranks.

    Returns:
        Tensor
    """
    return _AllReduce.apply(op, group, tensor)
