"""A communication hook of post-local SGD: gradients of all ranks first, of neighbours later."""

from __future__ import annotations

import facula
import facula.distributed as dist
from facula.distributed.algorithms.ddp_comm_hooks import default_hooks

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """What the hook remembers (Lin et al., "Don't Use Large Mini-Batches, Use Local SGD", 2018).

    Args:
        process_group (ProcessGroup): all ranks; the default group if None.
        subgroup (ProcessGroup): the ranks that average gradients later; those of a machine if None.
        start_localSGD_iter (int): how many iterations come before.
        post_local_gradient_allreduce (bool): whether gradients are averaged at all after them.
    """

    __slots__ = [
        "iter",
        "post_local_gradient_allreduce",
        "process_group",
        "start_localSGD_iter",
        "subgroup",
    ]

    def __init__(
        self, process_group, subgroup, start_localSGD_iter, post_local_gradient_allreduce=True
    ):
        self.process_group = process_group
        self.subgroup = subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket):
        """Count an iteration with its last bucket."""
        if bucket.is_last():
            self.iter += 1


def post_localSGD_hook(state, bucket):
    """Average gradients over all ranks, and after the first iterations over `state.subgroup`.

    Args:
        state (PostLocalSGDState): what is remembered.
        bucket (GradBucket): the gradients.

    Returns:
        Future of a tensor
    """
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return default_hooks.allreduce_hook(state.process_group, bucket)
    if not state.post_local_gradient_allreduce:
        done = facula.futures.Future()
        done.set_result(bucket.buffer())
        return done
    if state.subgroup is None:
        state.subgroup, _ = dist.new_subgroups()
    return default_hooks.allreduce_hook(state.subgroup, bucket)
