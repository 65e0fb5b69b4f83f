"""Whole parameters for a while, in the dtype of their shards."""

from __future__ import annotations

import contextlib

import facula
import facula.distributed as dist
from facula.nn import Parameter


@contextlib.contextmanager
def summoned(groups, writeback, rank0_only, with_grads):
    """Context manager: the modules of groups have whole parameters.

    Args:
        groups (list of FSDPParamGroup): theirs.
        writeback (bool): keep changes of values, and with `with_grads` of gradients.
        rank0_only (bool): only at the first rank of each group.
        with_grads (bool): the parameters have gradients.
    """
    put = []
    with facula.no_grad():
        for group in groups:
            group.reshard()
            for p in group.params:
                p.read_places()
                whole = _whole(p, with_grads)
                if not rank0_only or dist.get_rank() == 0:
                    p._put(whole)
                    put.append((p, whole))
    try:
        yield
    finally:
        with facula.no_grad():
            for p, whole in put:
                p._put(p.sharded_param)
                if writeback:
                    _write_back(p, whole, with_grads)


def _whole(p, with_grads):
    whole = Parameter(p.sharded_param.full_tensor().clone(), p.sharded_param.requires_grad)
    if with_grads and p.sharded_param.grad is not None:
        whole.grad = p.sharded_param.grad.full_tensor().clone()
    return whole


def _mine(p, whole):
    start, end = p.rows_of(p.dp.shard_rank)
    return whole.narrow(p.dim, start, end - start)


def _write_back(p, whole, with_grads):
    p.shard.copy_(_mine(p, whole))
    if with_grads:
        grad = whole.grad
        p.sharded_param.grad = None if grad is None else p.sharded(_mine(p, grad).clone())
