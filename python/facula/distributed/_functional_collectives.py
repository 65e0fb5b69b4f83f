"""Collectives that make new tensors: operators that tracing and autograd see.

They return at once, with the collective under way. What needs the values of a result waits for
them; where gradients are asked for, and while a program is traced, the calls themselves wait.

A group is a ProcessGroup, its name, a list of global ranks, or a one-dimensional DeviceMesh.
"""

from __future__ import annotations

import facula
from facula.distributed import _functional_operators  # noqa: F401
from facula.distributed._async_tensor import AsyncCollectiveTensor
from facula.distributed._process_group import ProcessGroup
from facula.distributed._reduce_op import ReduceOp
from facula.distributed._world import (
    _find_pg_by_ranks_and_tag,
    _get_default_group,
    _resolve_process_group,
    get_group_rank,
)
from facula.utils._python_dispatch import _get_current_dispatch_mode

_ops = facula.ops._c10d_functional


def _resolve_group(group, tag=""):
    if isinstance(group, ProcessGroup):
        return group
    if group is None:
        return _get_default_group()
    if isinstance(group, str):
        return _resolve_process_group(group)
    if isinstance(group, tuple) and hasattr(group[0], "get_group"):
        return group[0].get_group(group[1])
    if hasattr(group, "get_group"):
        return group.get_group()
    if isinstance(group, list) and group:
        ranks = [r for part in group for r in part] if isinstance(group[0], list) else group
        found = _find_pg_by_ranks_and_tag(tag, ranks)
        if found is not None:
            return found
    raise ValueError(f"expected a process group, its name or its ranks; got {group!r}")


def _resolve_group_name(group, tag=""):
    return _resolve_group(group, tag).group_name


def _name_of(reduce_op):
    if isinstance(reduce_op, str):
        return reduce_op.lower()
    return ReduceOp(reduce_op).op.name.lower()


def wait_tensor(tensor):
    """The tensor, once it is there.

    Args:
        tensor (Tensor): a result of this module, or of an operator of `_c10d_functional`.

    Returns:
        Tensor: a plain one
    """
    if isinstance(tensor, AsyncCollectiveTensor):
        return tensor.trigger_wait()
    return _ops.wait_tensor(tensor)


def wait_tensors(tensors):
    """The tensors, once they are there."""
    return [wait_tensor(t) for t in tensors]


def _under_way(tensor):
    """A result of an operator as the caller gets it."""
    plain = type(tensor) is facula.Tensor and not tensor.requires_grad
    if not plain or facula.compiler.is_compiling() or _get_current_dispatch_mode() is not None:
        return _ops.wait_tensor(tensor)
    return AsyncCollectiveTensor(tensor)


def _given(tensor):
    """An argument as operators take it."""
    return wait_tensor(tensor) if isinstance(tensor, AsyncCollectiveTensor) else tensor


def all_reduce(self, reduceOp, group, tag=""):
    """The reduction of a tensor over all ranks.

    Args:
        self (Tensor): the same size and dtype at all ranks.
        reduceOp (str): "sum", "avg", "max" ...; gradients for the first two.
        group: see the module.
        tag (str): of groups given by their ranks.

    Returns:
        Tensor: as `self`
    """
    name = _resolve_group_name(group, tag)
    return _under_way(_ops.all_reduce(_given(self).contiguous(), _name_of(reduceOp), name))


def all_reduce_coalesced(self, reduceOp, group, tag=""):
    """The reductions of several tensors."""
    return [all_reduce(t, reduceOp, group, tag) for t in self]


def broadcast(self, src, group, tag=""):
    """The tensor of a global rank.

    Args:
        self (Tensor): the same size and dtype at all ranks.
        src (int): whose tensor.
        group: see the module.
        tag (str): of groups given by their ranks.

    Returns:
        Tensor: as `self`
    """
    pg = _resolve_group(group, tag)
    root = get_group_rank(pg, src)
    return _under_way(_ops.broadcast(_given(self).contiguous(), root, pg.group_name))


def all_gather_tensor(self, gather_dim, group, tag=""):
    """The tensors of all ranks, behind each other.

    Args:
        self (Tensor): the same size and dtype at all ranks.
        gather_dim (int): along which dimension.
        group: see the module.
        tag (str): of groups given by their ranks.

    Returns:
        Tensor
    """
    pg = _resolve_group(group, tag)
    size = pg.size()
    whole = _ops.all_gather_into_tensor(_given(self).contiguous(), size, pg.group_name)
    if gather_dim % max(1, self.dim()) == 0:
        return _under_way(whole)
    return facula.cat(_ops.wait_tensor(whole).chunk(size, 0), gather_dim)


all_gather_tensor_autograd = all_gather_single = all_gather_single_autograd = all_gather_tensor


def all_gather_into_tensor_coalesced(self, group, tag=""):
    """`all_gather_tensor` of several tensors, along the first dimension."""
    return [all_gather_tensor(t, 0, group, tag) for t in self]


all_gather_single_coalesced = all_gather_into_tensor_coalesced


def reduce_scatter_tensor(self, reduceOp, scatter_dim, group, tag=""):
    """This rank's part of the reduction of a tensor.

    Args:
        self (Tensor): the same size and dtype at all ranks.
        reduceOp (str): "sum", "avg", "max" ...; gradients for the first two.
        scatter_dim (int): the dimension that is cut; the number of ranks divides it.
        group: see the module.
        tag (str): of groups given by their ranks.

    Returns:
        Tensor
    """
    pg = _resolve_group(group, tag)
    size = pg.size()
    if self.shape[scatter_dim] % size:
        raise AssertionError(
            f"reduce_scatter_tensor(): expected a dimension that {size} ranks divide; "
            f"got {self.shape[scatter_dim]}"
        )
    if scatter_dim % self.dim():
        self = facula.cat(self.chunk(size, scatter_dim))
    name = _name_of(reduceOp)
    return _under_way(
        _ops.reduce_scatter_tensor(_given(self).contiguous(), name, size, pg.group_name)
    )


reduce_scatter_tensor_autograd = reduce_scatter_single = reduce_scatter_tensor
reduce_scatter_single_autograd = reduce_scatter_tensor


def reduce_scatter_tensor_coalesced(inputs, reduceOp, scatter_dim, group, tag=""):
    """`reduce_scatter_tensor` of several tensors, each with its dimension."""
    return [
        reduce_scatter_tensor(t, reduceOp, d, group, tag)
        for t, d in zip(inputs, scatter_dim, strict=False)
    ]


reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced


def all_to_all_single(self, output_split_sizes, input_split_sizes, group, tag=""):
    """The parts of all ranks' tensors for this one, along the first dimension.

    Args:
        self (Tensor): the parts of this rank.
        output_split_sizes (list of int): their sizes at the receiver; default equal.
        input_split_sizes (list of int): their sizes in `self`; default equal.
        group: see the module.
        tag (str): of groups given by their ranks.

    Returns:
        Tensor
    """
    pg = _resolve_group(group, tag)
    equal = [self.shape[0] // pg.size()] * pg.size()
    received, sent = output_split_sizes or equal, input_split_sizes or equal
    return _under_way(
        _ops.all_to_all_single(_given(self).contiguous(), received, sent, pg.group_name)
    )


all_to_all_single_autograd = all_to_all_single


def permute_tensor(self, src_dst, group, tag=""):
    """The tensor of another rank: rank i sends its own to rank src_dst[i].

    Args:
        self (Tensor): the same size and dtype at all ranks.
        src_dst (list of int): a permutation of the group's ranks.
        group: see the module.
        tag (str): of groups given by their ranks.

    Returns:
        Tensor: as `self`
    """
    pg = _resolve_group(group, tag)
    size, rank = pg.size(), pg.rank()
    if sorted(src_dst) != list(range(size)):
        raise ValueError(f"permute_tensor(): expected a permutation of {size} ranks; got {src_dst}")
    sent, received = [0] * size, [0] * size
    sent[src_dst[rank]] = received[src_dst.index(rank)] = self.numel()
    moved = all_to_all_single(self.reshape(-1), received, sent, group, tag)
    return moved.view(self.shape)


# --- the calls of facula.distributed by way of these


def all_gather_tensor_inplace(
    output_tensor, input_tensor, group=None, async_op=False, tag="", gather_dim=0
):
    """`all_gather_tensor` into a tensor."""
    return output_tensor.copy_(all_gather_tensor(input_tensor, gather_dim, group, tag))


def reduce_scatter_tensor_inplace(
    output, input, op="sum", group=None, async_op=False, scatter_dim=0, tag=""
):
    """`reduce_scatter_tensor` into a tensor."""
    return output.copy_(reduce_scatter_tensor(input, op, scatter_dim, group, tag))


def all_reduce_inplace(tensor, op="sum", group=None, async_op=False, tag=""):
    """`all_reduce` into its argument."""
    return tensor.copy_(all_reduce(tensor, op, group, tag))


def all_to_all_inplace(
    output,
    input,
    output_split_sizes=None,
    input_split_sizes=None,
    group=None,
    async_op=False,
    tag="",
):
    """`all_to_all_single` into a tensor."""
    return output.copy_(all_to_all_single(input, output_split_sizes, input_split_sizes, group, tag))


def all_gather_inplace(tensor_list, tensor, group=None, async_op=False, tag=""):
    """`all_gather_tensor` into a list of tensors."""
    whole = all_gather_tensor(tensor, 0, group, tag)
    for to, part in zip(tensor_list, whole.split(len(whole) // len(tensor_list)), strict=False):
        to.copy_(part)
    return tensor_list
