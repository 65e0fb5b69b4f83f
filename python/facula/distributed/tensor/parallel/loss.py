"""loss_parallel: cross entropy of scores whose classes are spread over ranks."""

from __future__ import annotations

import contextlib

from facula.distributed.tensor._settings import settings


@contextlib.contextmanager
def loss_parallel():
    """Within it, `cross_entropy` takes scores whose classes are cut, and leaves them so.

    The classes are dimension 1 of the scores (0 if there is but one sample); `loss.backward()`
    belongs inside too.

    Example:
        >>> from facula.distributed.tensor import Replicate, Shard, distribute_tensor
        >>> def work(rank):
        ...     mesh = facula.distributed.init_device_mesh("cpu", (2,))
        ...     scores = distribute_tensor(facula.zeros(3, 4), mesh, [Shard(1)])
        ...     classes = distribute_tensor(facula.tensor([0, 1, 3]), mesh, [Replicate()])
        ...     with loss_parallel():
        ...         loss = facula.nn.functional.cross_entropy(scores, classes)
        ...     return round(loss.to_local().exp().item(), 3)
        >>> facula.distributed.threads.run(work, 2)
        [4.0, 4.0]
    """
    before = settings.loss_parallel
    settings.loss_parallel = True
    try:
        yield
    finally:
        settings.loss_parallel = before
