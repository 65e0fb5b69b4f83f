"""Communication hooks to measure by."""

import facula

__all__ = ["noop_hook"]


def noop_hook(_, bucket):
    """No communication: the time of a step without it.

    Args:
        bucket (GradBucket): the gradients, which stay this rank's.

    Returns:
        Future of a tensor
    """
    future = facula.futures.Future()
    future.set_result(bucket.buffer())
    return future
