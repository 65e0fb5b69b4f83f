"""Communication hooks after which a ZeroRedundancyOptimizer steps within the backward pass."""

from __future__ import annotations

__all__ = ["hook_with_zero_step", "hook_with_zero_step_interleaved"]


class _Steps:
    """The buckets of a backward pass whose parameters are to be updated, in their order."""

    def __init__(self, zero, delay):
        self._zero, self._delay = zero, delay
        self._averaged, self._works = [], []

    def add(self, bucket, future):
        """Note a bucket; update the parameters of those that may be updated by now."""
        self._averaged.append((bucket, future))
        while len(self._averaged) > (0 if bucket.is_last() else self._delay):
            self._step(*self._averaged.pop(0))
        if not bucket.is_last():
            return
        works, self._works = self._works, []
        for work in works:
            work.wait()

    def _step(self, bucket, future):
        value = future.wait()
        bucket.set_buffer(value[0] if isinstance(value, (list, tuple)) else value)
        self._works += self._zero._step_of(bucket.parameters(), bucket.gradients())


def _hook(name, hook, zero, delay):
    if not getattr(zero, "_overlap_with_ddp", False):
        raise ValueError(
            f"{name}(): expected a ZeroRedundancyOptimizer with overlap_with_ddp=True; got "
            f"{type(zero).__name__} without it"
        )
    steps = _Steps(zero, delay)

    def hooked(state, bucket):
        future = hook(state, bucket)
        steps.add(bucket, future)
        return future

    return hooked


def hook_with_zero_step(hook, ddp, zero, shard_buckets=False):
    """A hook that communicates as another one; after the last bucket the optimizer steps.

    The steps of the first buckets go on while the last ones are still averaged. Updates are made in
    each pass, from the first on.

    Args:
        hook (callable): averages the gradients of a bucket.
        ddp (DistributedDataParallel): whose hook this becomes.
        zero (ZeroRedundancyOptimizer): made with `overlap_with_ddp`.
        shard_buckets (bool): has no effect: parameters have owners, whatever their buckets are.

    Returns:
        callable: for `ddp.register_comm_hook`

    Raises:
        ValueError: the optimizer was made without `overlap_with_ddp`.
    """
    return _hook("hook_with_zero_step", hook, zero, float("inf"))


def hook_with_zero_step_interleaved(hook, ddp, zero, shard_buckets=False):
    """A hook that communicates as another one; a bucket's step comes when the next one is ready.

    Args:
        hook, ddp, zero, shard_buckets: see `hook_with_zero_step`.

    Returns:
        callable: for `ddp.register_comm_hook`

    Raises:
        ValueError: the optimizer was made without `overlap_with_ddp`.
    """
    return _hook("hook_with_zero_step_interleaved", hook, zero, 1)
