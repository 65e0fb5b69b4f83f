"""Communication with derivatives: this build has no process group, and each function says so."""

from __future__ import annotations

from facula.distributed.distributed_c10d import ReduceOp, _get_default_group


def broadcast(tensor, src, group=None):
    """Send a tensor to all processes: ValueError without a process group."""
    _get_default_group()


def gather(tensor, dst=0, group=None):
    """Bring tensors to one process: ValueError without a process group."""
    _get_default_group()


def scatter(tensors, src=0, group=None):
    """Send each process its tensor: ValueError without a process group."""
    _get_default_group()


def reduce(tensor, dst, op=ReduceOp.SUM, group=None):
    """Reduce tensors to one process: ValueError without a process group."""
    _get_default_group()


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None):
    """Reduce lists of tensors, and send each process a part: ValueError without a group."""
    _get_default_group()


def all_gather(tensor, group=None):
    """Bring tensors to all processes: ValueError without a process group."""
    _get_default_group()


def all_to_all(output_tensor_list, input_tensor_list, group=None):
    """Send each process a tensor of each: ValueError without a process group."""
    _get_default_group()


def all_reduce(tensor, op=ReduceOp.SUM, group=None):
    """Reduce tensors to all processes: ValueError without a process group."""
    _get_default_group()
