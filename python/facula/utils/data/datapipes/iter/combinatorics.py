"""Other orders of items."""

import random

import facula
from facula.utils.data.sampler import Sampler, SequentialSampler

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe

__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]


class SamplerIterDataPipe(IterDataPipe):
    """What a sampler over a datapipe gives.

    Args:
        datapipe (IterDataPipe): has a length.
        sampler (class): of samplers.
        sampler_args (tuple): for it, behind the datapipe.
        sampler_kwargs (dict): for it.
    """

    def __init__(self, datapipe, sampler=SequentialSampler, sampler_args=None, sampler_kwargs=None):
        if not hasattr(type(datapipe), "__len__"):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        super().__init__()
        self.datapipe = datapipe
        self.sampler_args = () if sampler_args is None else sampler_args
        self.sampler_kwargs = {} if sampler_kwargs is None else sampler_kwargs
        self.sampler: Sampler = sampler(datapipe, *self.sampler_args, **self.sampler_kwargs)

    def __iter__(self):
        yield from self.sampler

    def __len__(self):
        return len(self.sampler)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(IterDataPipe):
    """Items in a random order, by a buffer from which each time a random one is taken.

    The seed is drawn from the default generator for each pass, unless set_seed gave one.

    Args:
        datapipe (IterDataPipe): the source.
        buffer_size (int): items in the buffer; as many as the source has mix completely.
        unbatch_level (int): take batches apart first, so many times.
    """

    def __init__(self, datapipe, *, buffer_size=10000, unbatch_level=0):
        super().__init__()
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.buffer_size = buffer_size
        self.datapipe = (
            datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level)
        )
        self._enabled, self._seed = True, None
        self._buffer, self._rng = [], random.Random()

    def set_shuffle(self, shuffle=True):
        """Whether to shuffle; returns the datapipe."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed):
        """The seed of the next pass; returns the datapipe."""
        self._seed = seed
        return self

    def reset(self):
        """Begin with an empty buffer and a seed."""
        self._buffer = []
        if not self._enabled:
            return
        if self._seed is None:
            self._seed = int(facula.empty((), dtype=facula.int64).random_().item())
        self._rng.seed(self._seed)
        self._seed = None

    def __iter__(self):
        if not self._enabled:
            yield from self.datapipe
            return
        for item in self.datapipe:
            if len(self._buffer) < self.buffer_size:
                self._buffer.append(item)
                continue
            at = self._rng.randint(0, len(self._buffer) - 1)
            taken, self._buffer[at] = self._buffer[at], item
            yield taken
        while self._buffer:
            yield self._buffer.pop(self._rng.randint(0, len(self._buffer) - 1))

    def __len__(self):
        return len(self.datapipe)
