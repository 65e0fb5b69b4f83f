"""Hooks for `FullyShardedDataParallel.register_comm_hook`: averages, also in half precision."""

from __future__ import annotations

import facula
import facula.distributed as dist

__all__ = [
    "DefaultState",
    "LowPrecisionState",
    "allreduce_hook",
    "bf16_compress_hook",
    "fp16_compress_hook",
    "reduce_scatter_hook",
]


class DefaultState:
    """What hooks know: the ranks, and what gradients are divided by.

    Half is divided before gradients are added up and half afterwards, so that sums of float16
    stay finite.

    Args:
        process_group (ProcessGroup): the ranks.

    Raises:
        ValueError: no group.
    """

    def __init__(self, process_group):
        if process_group is None:
            raise ValueError(f"{type(self).__name__}(): expected a process group; got None")
        self.process_group = process_group
        self.world_size = dist.get_world_size(process_group)
        self.gradient_predivide_factor = self._get_gradient_predivide_factor(self.world_size)
        self.gradient_postdivide_factor = self.world_size / self.gradient_predivide_factor

    @staticmethod
    def _get_gradient_predivide_factor(world_size):
        factor = 1
        while world_size % factor == 0 and world_size / factor > factor:
            factor *= 2
        return float(factor)


class LowPrecisionState(DefaultState):
    """A DefaultState for hooks that communicate in half precision.

    Args:
        process_group (ProcessGroup): the ranks.
        parameter_type (dtype): that of the gradients afterwards.
    """

    def __init__(self, process_group, parameter_type=facula.float32):
        super().__init__(process_group)
        self.parameter_type = parameter_type


def allreduce_hook(state, grad):
    """Average gradients that all ranks have whole.

    Args:
        state (DefaultState): the ranks.
        grad (Tensor): becomes the average.
    """
    grad.div_(state.gradient_predivide_factor)
    dist.all_reduce(grad, group=state.process_group)
    grad.div_(state.gradient_postdivide_factor)


def reduce_scatter_hook(state, grad, output):
    """Average gradients, of which each rank gets its part.

    Args:
        state (DefaultState): the ranks.
        grad (Tensor): the whole gradient; changed.
        output (Tensor): becomes this rank's part of the average.
    """
    grad.div_(state.gradient_predivide_factor)
    dist.reduce_scatter_tensor(output, grad, group=state.process_group)
    output.div_(state.gradient_postdivide_factor)


def _low_precision_hook(dtype, state, grad, output):
    small = grad.to(dtype)
    if output is None:
        allreduce_hook(state, small)
        grad.copy_(small)
        return
    part = small.new_empty(output.shape)
    reduce_scatter_hook(state, small, part)
    output.copy_(part)


def fp16_compress_hook(state, grad, output=None):
    """`allreduce_hook`, or `reduce_scatter_hook` where `output` is given, in float16."""
    _low_precision_hook(facula.float16, state, grad, output)


def bf16_compress_hook(state, grad, output=None):
    """`allreduce_hook`, or `reduce_scatter_hook` where `output` is given, in bfloat16."""
    _low_precision_hook(facula.bfloat16, state, grad, output)
