"""Datasets."""
from __future__ import annotations

import bisect
import math
from itertools import accumulate

import facula


class Dataset:
    """Base of datasets that are indexed: define `__getitem__`, and `__len__` for most samplers."""

    def __class_getitem__(cls, item):
        return cls

    def __getitem__(self, index):
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Base of datasets that are iterated: define `__iter__`."""

    def __iter__(self):
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other):
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Rows of tensors of the same length: item i is the tuple of row i of each.

    Args:
        tensors: Tensors with the same size(0).

    Raises:
        AssertionError: different sizes.
    """

    def __init__(self, *tensors):
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self):
        return self.tensors[0].size(0)


class StackDataset(Dataset):
    """Items of several datasets side by side: a tuple, or a dict for keyword arguments.

    Raises:
        ValueError: different lengths, no datasets, or both kinds of arguments.
    """

    def __init__(self, *args, **kwargs):
        if args and kwargs:
            raise ValueError("Supported either ``tuple``- (via ``args``) or"
                             "``dict``- (via ``kwargs``) like input/output, but both types are "
                             "given.")
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = args or kwargs
        members = list(self._members())
        self._length = len(members[0])
        if any(len(d) != self._length for d in members):
            raise ValueError("Size mismatch between datasets")

    def _members(self):
        return self.datasets.values() if isinstance(self.datasets, dict) else self.datasets

    def __getitem__(self, index):
        if isinstance(self.datasets, dict):
            return {k: dataset[index] for k, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices):
        columns = [_items(dataset, indices) for dataset in self._members()]
        if isinstance(self.datasets, dict):
            return [dict(zip(self.datasets, row)) for row in zip(*columns)]
        return list(zip(*columns))

    def __len__(self):
        return self._length


def _items(dataset, indices):
    fetch = getattr(dataset, "__getitems__", None)
    if not callable(fetch):
        return [dataset[i] for i in indices]
    items = fetch(indices)
    if len(items) != len(indices):
        raise ValueError("Nested dataset's output size mismatch. "
                         f"Expected {len(indices)}, got {len(items)}")
    return items


class ConcatDataset(Dataset):
    """Datasets one after another.

    Raises:
        AssertionError: no datasets, or an IterableDataset.
    """

    @staticmethod
    def cumsum(sequence):
        """The end position of each dataset; returns a list."""
        return list(accumulate(len(e) for e in sequence))

    def __init__(self, datasets):
        super().__init__()
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx):
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        start = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][idx - start]


class ChainDataset(IterableDataset):
    """IterableDatasets one after another."""

    def __init__(self, datasets):
        super().__init__()
        self.datasets = datasets

    def __iter__(self):
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from dataset

    def __len__(self):
        total = 0
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            total += len(dataset)
        return total


class Subset(Dataset):
    """The items of `dataset` at `indices`."""

    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx):
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices):
        fetch = getattr(self.dataset, "__getitems__", None)
        chosen = [self.indices[i] for i in indices]
        return fetch(chosen) if callable(fetch) else [self.dataset[i] for i in chosen]

    def __len__(self):
        return len(self.indices)


def _counts(lengths, total):
    """Turn fractions into counts; what rounding leaves goes to the first ones in turn."""
    counts = []
    for i, fraction in enumerate(lengths):
        if not 0 <= fraction <= 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        counts.append(int(math.floor(total * fraction)))
    for i in range(total - sum(counts)):
        counts[i % len(counts)] += 1
    return counts


def random_split(dataset, lengths, generator=None):
    """Split a dataset at random.

    Args:
        dataset: has a length.
        lengths: counts that sum to it, or fractions that sum to 1.
        generator: source of random numbers; the default one when None.

    Returns:
        A list of Subset.

    Raises:
        ValueError: counts that do not sum to the length, or a bad fraction.
    """
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _counts(lengths, len(dataset))
        for i, length in enumerate(lengths):
            if length == 0:
                import warnings
                warnings.warn(f"Length of split at index {i} is 0. This might result in an empty "
                              "dataset.", stacklevel=2)
    if sum(lengths) != len(dataset):
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    generator = facula.default_generator if generator is None else generator
    indices = facula.randperm(sum(lengths), generator=generator).tolist()
    ends = accumulate(lengths)
    return [Subset(dataset, indices[end - length:end]) for end, length in zip(ends, lengths)]
