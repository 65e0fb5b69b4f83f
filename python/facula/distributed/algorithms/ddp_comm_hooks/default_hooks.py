"""Communication hooks: a plain average, and averages of halves."""

from __future__ import annotations

import facula
from facula.distributed._reduce_op import AllreduceOptions

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]


def _group(process_group):
    return process_group if process_group is not None else facula.distributed.group.WORLD


def _sum(process_group, tensor):
    """A future of a tensor's sum over ranks, in place."""
    options = AllreduceOptions()
    options.asyncOp = True
    work = _group(process_group).allreduce([tensor], options)
    return work.get_future().then(lambda done: _first(done.value()))


def _first(result):
    return result[0] if isinstance(result, (list, tuple)) else result


def allreduce_hook(process_group, bucket):
    """Average gradients over ranks, as without a hook.

    Args:
        process_group (ProcessGroup): the ranks; None for all.
        bucket (GradBucket): the gradients.

    Returns:
        Future of a tensor
    """
    buffer = bucket.buffer()
    return _sum(process_group, buffer.div_(_group(process_group).size()))


def _compressed(dtype, process_group, bucket):
    buffer = bucket.buffer()
    small = buffer.to(dtype).div_(_group(process_group).size())

    def widen(done):
        return buffer.copy_(done.value())

    return _sum(process_group, small).then(widen)


def fp16_compress_hook(process_group, bucket):
    """Average gradients over ranks as float16, which halves the bytes of float32.

    Args:
        process_group (ProcessGroup): the ranks; None for all.
        bucket (GradBucket): the gradients.

    Returns:
        Future of a tensor of the gradients' dtype
    """
    return _compressed(facula.float16, process_group, bucket)


def bf16_compress_hook(process_group, bucket):
    """Average gradients over ranks as bfloat16.

    Args:
        process_group (ProcessGroup): the ranks; None for all.
        bucket (GradBucket): the gradients.

    Returns:
        Future of a tensor of the gradients' dtype
    """
    return _compressed(facula.bfloat16, process_group, bucket)


def _wrapper(dtype, hook):
    def compressed(state, bucket):
        wide = bucket.buffer()
        bucket.set_buffer(wide.to(dtype))

        def widen(done):
            return wide.copy_(_first(done.value()))

        return hook(state, bucket).then(widen)

    return compressed


def fp16_compress_wrapper(hook):
    """A hook that gives another one its gradients as float16."""
    return _wrapper(facula.float16, hook)


def bf16_compress_wrapper(hook):
    """A hook that gives another one its gradients as bfloat16."""
    return _wrapper(facula.bfloat16, hook)
