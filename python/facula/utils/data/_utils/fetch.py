"""Fetchers: the batch that an index, or a list of them, asks of a dataset."""

from __future__ import annotations

import sys


def is_datapipe(dataset):
    """Whether a dataset is an iterated datapipe, whose module is loaded then."""
    bases = sys.modules.get(__package__.rpartition(".")[0] + ".datapipes.datapipe")
    return bases is not None and isinstance(dataset, bases.IterDataPipe)


class PipeSeeds:
    """Seeds the random datapipes of a dataset for each epoch, the same in all workers.

    Args:
        shared_seed (int): what the seeds are drawn from; None for a dataset that is no datapipe.
    """

    def __init__(self, shared_seed):
        import facula

        self.generator = None
        if shared_seed is not None:
            self.generator = facula.Generator().manual_seed(shared_seed)

    def apply(self, dataset):
        """Seed for an epoch that begins."""
        if self.generator is not None:
            from facula.utils.data.graph_settings import apply_random_seed

            apply_random_seed(dataset, self.generator)


class MapFetcher:
    """Fetches from a dataset that is indexed.

    Args:
        dataset: has `__getitem__`.
        auto_collation (bool): an index is a list, whose items are collated.
        collate_fn (callable): makes a batch of a list of items, or converts one item.
        drop_last (bool): unused here; the sampler leaves out such batches.
    """

    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        self.dataset, self.auto_collation, self.collate_fn = dataset, auto_collation, collate_fn

    def fetch(self, index):
        """The batch of an index."""
        if not self.auto_collation:
            return self.collate_fn(self.dataset[index])
        fetch = getattr(self.dataset, "__getitems__", None)
        items = fetch(index) if fetch else [self.dataset[i] for i in index]
        return self.collate_fn(items)


class IterableFetcher:
    """Fetches from a dataset that is iterated; an index only says how many items.

    Args:
        dataset: has `__iter__`.
        auto_collation (bool): an index is a list, for which as many items are collated.
        collate_fn (callable): makes a batch of a list of items, or converts one item.
        drop_last (bool): leave out a last batch that is not full.
    """

    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        self.auto_collation, self.collate_fn = auto_collation, collate_fn
        self.drop_last = drop_last
        self.items = iter(dataset)
        self.ended = False

    def fetch(self, index):
        """The next batch; raises StopIteration where there is none."""
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.items))
        items = []
        for _ in index:
            try:
                items.append(next(self.items))
            except StopIteration:
                self.ended = True
                break
        if not items or (self.drop_last and len(items) < len(index)):
            raise StopIteration
        return self.collate_fn(items)

    def skip(self, count):
        """Pass over items."""
        for _ in range(count):
            try:
                next(self.items)
            except StopIteration:
                self.ended = True
                return


def fetcher_for(iterable, *args):
    """The fetcher of an iterable dataset or of an indexed one."""
    return (IterableFetcher if iterable else MapFetcher)(*args)
