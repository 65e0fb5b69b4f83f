"""Orders in which a dataset's items are taken."""

from __future__ import annotations

from itertools import chain, islice, repeat
from types import GenericAlias

import facula


class Sampler:
    """Base of samplers: define `__iter__` over indices, and mostly `__len__`."""

    __class_getitem__ = classmethod(GenericAlias)

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


def _positive(name, value):
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} must be a positive integer; got {value!r}")
    return value


def _yes_or_no(name, value):
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be a bool; got {value!r}")
    return value


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
            raise TypeError(f"RandomSampler: replacement must be a bool; got {replacement!r}")
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(
                f"RandomSampler: num_samples must be a positive integer; got {self.num_samples!r}"
            )

    @property
    def num_samples(self):
        """How many indices an epoch has."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        n = len(self.data_source)
        generator = _fresh_generator() if self.generator is None else self.generator
        draw = self._numbers if self.replacement else self._permutation
        # Each round draws a part of the whole; the sizes of the parts fix the random numbers.
        part = 32 if self.replacement else n
        rounds, rest = divmod(self.num_samples, part)
        for count in chain(repeat(part, rounds), [rest]):
            yield from draw(n, count, generator)

    @staticmethod
    def _permutation(n, count, generator):
        return facula.randperm(n, generator=generator).tolist()[:count]

    @staticmethod
    def _numbers(n, count, generator):
        return facula.randint(n, (count,), generator=generator).tolist()

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """The given indices in random order."""

    def __init__(self, indices, generator=None):
        self.indices = indices
        self.generator = generator

    def __iter__(self):
        order = facula.randperm(len(self.indices), generator=self.generator).tolist()
        yield from map(self.indices.__getitem__, order)

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
        self.num_samples = _positive("WeightedRandomSampler: num_samples", num_samples)
        self.replacement = _yes_or_no("WeightedRandomSampler: replacement", replacement)
        self.weights = facula.as_tensor(weights, dtype=facula.double)
        if self.weights.dim() != 1:
            raise ValueError(
                "WeightedRandomSampler: weights must be a sequence of numbers; got "
                f"shape {tuple(self.weights.shape)}"
            )
        self.generator = generator

    def __iter__(self):
        drawn = facula.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
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
        self.batch_size = _positive("BatchSampler: batch_size", batch_size)
        self.drop_last = _yes_or_no("BatchSampler: drop_last", drop_last)
        self.sampler = sampler

    def __iter__(self):
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self):
        full, rest = divmod(len(self.sampler), self.batch_size)
        return full + (1 if rest and not self.drop_last else 0)
