"""Another order of items."""

import random

import facula

from ..datapipe import IterDataPipe, MapDataPipe

__all__ = ["ShufflerIterDataPipe"]


class ShufflerIterDataPipe(IterDataPipe):
    """The items of an indexed datapipe, iterated in a random order.

    The seed is drawn from the default generator for each pass, unless set_seed gave one.

    Args:
        datapipe (MapDataPipe): the source.
        indices (list): its indices, where they are not 0, 1 ...
    """

    def __init__(self, datapipe, *, indices=None):
        super().__init__()
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices
        self._enabled, self._seed = True, None
        self._rng, self._shuffled_indices = random.Random(), self.indices

    def set_shuffle(self, shuffle=True):
        """Whether to shuffle; returns the datapipe."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed):
        """The seed of the next pass; returns the datapipe."""
        self._seed = seed
        return self

    def reset(self):
        """Draw an order."""
        if not self._enabled:
            return
        if self._seed is None:
            self._seed = int(facula.empty((), dtype=facula.int64).random_().item())
        self._rng.seed(self._seed)
        self._seed = None
        self._shuffled_indices = list(self.indices)
        self._rng.shuffle(self._shuffled_indices)

    def __iter__(self):
        for index in self._shuffled_indices if self._enabled else self.indices:
            yield self.datapipe[index]

    def __len__(self):
        return len(self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
