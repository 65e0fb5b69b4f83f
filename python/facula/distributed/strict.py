"""Gradients that do not depend, not in a bit, on how many ranks share a batch."""

from __future__ import annotations

import facula
from facula.distributed import _world as world
from facula.distributed._collectives import all_gather

__all__ = ["strict_backward"]


class _PairwiseSum:
    """A sum of 2, 4, 8 ... lists of tensors whose order is that of a binary tree.

    Partial sums of equal size are added as soon as there are two, as the carries of a counter.
    """

    def __init__(self):
        self._sums = []  # (how many were added up, tensors)

    def add(self, tensors, count=1):
        """Add a list, which is a sum of `count` already."""
        while self._sums and self._sums[-1][0] == count:
            _, before = self._sums.pop()
            tensors = [a + b for a, b in zip(before, tensors, strict=True)]
            count *= 2
        self._sums.append((count, tensors))

    def total(self):
        """The tensors of the whole sum."""
        ((_, tensors),) = self._sums
        return tensors


def _is_power_of_two(n):
    return n > 0 and n & (n - 1) == 0


def strict_backward(module, loss_of, batch, chunks=8, group=None):
    """Set gradients of a mean loss, with the same bits on 1, 2, 4 ... ranks.

    The whole batch is cut into equal chunks. Each rank goes through its own, one at a time, and
    gradients of chunks are added in the order of a binary tree over all chunks, whoever has them. A
    step costs `chunks` passes of small batches and gathers all gradients on each rank, so this is
    for comparing runs and not for speed.

    It holds where a chunk's gradient does not depend on other chunks: not with batch statistics
    (`BatchNorm`), random numbers that ranks draw for themselves (dropout), or losses that are no
    mean over samples.

    Args:
        module (Module): a plain one, the same on all ranks; no DistributedDataParallel.
        loss_of (callable): gives the mean loss of `module` and a part of the batch.
        batch (Tensor or tuple of Tensor): this rank's part of the whole batch, in the order of
            ranks, cut along dimension 0.
        chunks (int): of the whole batch; a power of two, and at least the number of ranks.
        group (ProcessGroup): the ranks; default all, or this process alone without a group.

    Returns:
        Tensor: the mean loss of the whole batch, with the same bits too

    Raises:
        ValueError: numbers of chunks, ranks or samples that do not divide each other.

    Example:
        >>> model = facula.nn.Linear(3, 1)
        >>> x = facula.randn(8, 3)
        >>> loss = strict_backward(model, lambda m, x: m(x).square().mean(), x, chunks=4)
        >>> model.weight.grad.shape
        facula.Size([1, 3])
    """
    ranks = world.get_world_size(group) if group is not None or world.is_initialized() else 1
    tensors = batch if isinstance(batch, (tuple, list)) else (batch,)
    samples, mine = tensors[0].shape[0], chunks // ranks
    if not (_is_power_of_two(chunks) and _is_power_of_two(ranks) and mine):
        raise ValueError(
            "strict_backward(): expected chunks and ranks that are powers of two, and no more "
            f"ranks than chunks; got {chunks} chunks and {ranks} ranks"
        )
    if samples % mine or any(t.shape[0] != samples for t in tensors):
        raise ValueError(
            f"strict_backward(): expected tensors of as many samples each, which {mine} chunks a "
            f"rank divide; got {[t.shape[0] for t in tensors]}"
        )
    params = [p for p in module.parameters() if p.requires_grad]
    total = _PairwiseSum()
    for parts in zip(*(t.chunk(mine) for t in tensors), strict=True):
        total.add(_loss_and_gradients(module, loss_of, params, parts))
    sums = total.total() if ranks == 1 else _over_ranks(total.total(), ranks, mine, group)
    with facula.no_grad():
        for p, grad in zip(params, sums[1:], strict=True):
            p.grad = grad.div_(chunks)
    return sums[0].div_(chunks)


def _loss_and_gradients(module, loss_of, params, parts):
    loss = loss_of(module, *parts)
    grads = facula.autograd.grad(loss, params, allow_unused=True)
    grads = [facula.zeros_like(p) if g is None else g for p, g in zip(params, grads, strict=True)]
    return [loss.detach(), *(g.detach() for g in grads)]


def _over_ranks(sums, ranks, count, group):
    """The sums of all ranks, added by the same tree."""
    total = _PairwiseSum()
    flat = facula.cat([t.reshape(-1) for t in sums])
    gathered = [facula.empty_like(flat) for _ in range(ranks)]
    all_gather(gathered, flat, group=group)
    for of_rank in gathered:
        pieces = of_rank.split([t.numel() for t in sums])
        total.add([p.reshape(t.shape) for p, t in zip(pieces, sums, strict=True)], count)
    return total.total()
