"""The sampler of distributed training."""

from __future__ import annotations

import math

import facula
from facula.utils.data.sampler import Sampler


class DistributedSampler(Sampler):
    """The part of a dataset's indices that belongs to one process.

    Args:
        dataset: has a length.
        num_replicas, rank: count of processes and number of this one; default those of the default
            process group.
        shuffle: random order, from `seed` and the epoch.
        drop_last: leave out indices so that all parts are of one size, instead of repeating some.

    Raises:
        ValueError: a bad rank; `num_replicas` or `rank` is missing, and there is no process group.
    """

    def __init__(
        self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False
    ):
        if num_replicas is None:
            num_replicas = facula.distributed.get_world_size()
        if rank is None:
            rank = facula.distributed.get_rank()
        if not 0 <= rank < num_replicas:
            raise ValueError(f"DistributedSampler: rank must be in [0, {num_replicas}); got {rank}")
        share = len(dataset) / num_replicas
        self.num_samples = math.floor(share) if drop_last else math.ceil(share)
        self.total_size = self.num_samples * num_replicas
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0

    def __iter__(self):
        n = len(self.dataset)
        if self.shuffle:
            generator = facula.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = facula.randperm(n, generator=generator).tolist()
        else:
            indices = list(range(n))
        if not self.drop_last:
            missing = self.total_size - n
            indices += (indices * math.ceil(missing / max(n, 1)))[:missing]
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        """Set the epoch, which changes the random order."""
        self.epoch = epoch
