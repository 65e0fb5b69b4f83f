"""Whole parameters that a few neighbouring ranks keep together between forward and backward."""

from __future__ import annotations

import weakref

import facula
import facula.distributed as dist

_groups = weakref.WeakKeyDictionary()  # group of all shards -> by size: group of neighbours


def _neighbours(dp, size):
    """The group of this rank and its neighbours, one for all modules."""
    by_size = _groups.setdefault(dp.shard_group, {})
    if size not in by_size:
        ranks = dist.get_process_group_ranks(dp.shard_group)
        first = dp.shard_rank // size * size
        by_size[size] = dist.new_group(
            ranks[first : first + size], use_local_synchronization=True, sort_ranks=False
        )
    return by_size[size]


class PostForwardParts:
    """A part of each whole parameter of a group: fewer ranks have all parts than have all shards.

    Backward gathers from the neighbours, which may be those of one machine, at the cost of memory
    for larger parts (Rajbhandari et al., "ZeRO++", 2023, the second copy of weights).

    Args:
        dp (DataParallelMesh): the ranks that have shards.
        size (int): how many neighbours keep all parts together.
    """

    def __init__(self, dp, size):
        self.size, self.rank = size, dp.shard_rank % size
        self.group = _neighbours(dp, size)
        self._parts = None

    @property
    def is_kept(self):
        """Whether there are parts."""
        return self._parts is not None

    def keep(self, params):
        """Keep this rank's parts of parameters that are whole.

        Args:
            params (list of FSDPParam): of the group.
        """
        self._parts = []
        for p in params:
            storage = p.allocate()
            count = -(-storage.numel() // self.size)
            part = storage.new_zeros(count)
            mine = storage[self.rank * count : (self.rank + 1) * count]
            part[: mine.numel()].copy_(mine)
            self._parts.append(part)

    def drop(self):
        """Let the parts go."""
        self._parts = None

    def gather(self, params):
        """Fill the storage of the parameters, and let the parts go."""
        parts, self._parts = self._parts, None
        by_dtype = {}
        for p, part in zip(params, parts, strict=True):
            by_dtype.setdefault(part.dtype, []).append((p, part))
        for pairs in by_dtype.values():
            mine = facula.cat([part for _, part in pairs])
            out = mine.new_empty(self.size, mine.numel())
            dist.all_gather_into_tensor(out.view(-1), mine, group=self.group)
            offset = 0
            for p, part in pairs:
                storage = p.allocate()
                whole = out[:, offset : offset + part.numel()].reshape(-1)
                storage.copy_(whole[: storage.numel()])
                offset += part.numel()
