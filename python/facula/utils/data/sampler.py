"""Orders in which a dataset's items are taken."""
from __future__ import annotations

from itertools import islice

import facula


class Sampler:
    """Base of samplers: define `__iter__` over indices, and mostly `__len__`."""

    def __class_getitem__(cls, item):
        return cls

    def __iter__(self):
        raise NotImplementedError


class SequentialSampler(Sampler):
    """0, 1, 2, ..."""

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


def _fresh_generator():
    """A generator seeded from the default one, so that a sampler draws one number from that."""
    generator = facula.Generator()
    generator.manual_seed(int(facula.empty((), dtype=facula.int64).random_().item()))
    return generator


class RandomSampler(Sampler):
    """Indices in random order.

    Args:
        data_source: has a length.
        replacement: draw with replacement.
        num_samples: how many; the length when None.
        generator: source of random numbers; a fresh one per epoch when None.

    Raises:
        TypeError, ValueError: bad settings.
    """

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(
                f"replacement should be a boolean value, but got replacement={replacement}")
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError("num_samples should be a positive integer value, but got "
                             f"num_samples={self.num_samples}")

    @property
    def num_samples(self):
        """How many indices an epoch has."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        n = len(self.data_source)
        generator = _fresh_generator() if self.generator is None else self.generator
        if self.replacement:
            yield from self._with_replacement(n, generator)
            return
        for _ in range(self.num_samples // n):
            yield from facula.randperm(n, generator=generator).tolist()
        yield from facula.randperm(n, generator=generator).tolist()[:self.num_samples % n]

    def _with_replacement(self, n, generator):
        # Drawn 32 at a time, which fixes the order of the random numbers.
        for _ in range(self.num_samples // 32):
            yield from facula.randint(high=n, size=(32,), dtype=facula.int64,
                                      generator=generator).tolist()
        rest = self.num_samples % 32
        yield from facula.randint(high=n, size=(rest,), dtype=facula.int64,
                                  generator=generator).tolist()

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """The given indices in random order."""

    def __init__(self, indices, generator=None):
        self.indices = indices
        self.generator = generator

    def __iter__(self):
        for i in facula.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Indices drawn with given weights.

    Args:
        weights: one per index; they need not sum to 1.
        num_samples: how many.
        replacement: draw with replacement.
        generator: source of random numbers.

    Raises:
        ValueError: bad settings.
    """

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError("num_samples should be a positive integer value, but got "
                             f"num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(
                f"replacement should be a boolean value, but got replacement={replacement}")
        weights = facula.as_tensor(weights, dtype=facula.double)
        if weights.dim() != 1:
            raise ValueError("weights should be a 1d sequence but given weights have shape "
                             f"{tuple(weights.shape)}")
        self.weights = weights
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self):
        drawn = facula.multinomial(self.weights, self.num_samples, self.replacement,
                                   generator=self.generator)
        yield from iter(drawn.tolist())

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of `batch_size` indices of another sampler.

    Args:
        sampler: iterable of indices.
        batch_size: a positive int.
        drop_last: leave out a last batch that is not full.

    Raises:
        ValueError: bad settings.
    """

    def __init__(self, sampler, batch_size, drop_last):
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError("batch_size should be a positive integer value, but got "
                             f"batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(
                f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self):
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self):
        full, rest = divmod(len(self.sampler), self.batch_size)
        return full + (1 if rest and not self.drop_last else 0)
