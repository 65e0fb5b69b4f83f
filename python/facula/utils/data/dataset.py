"""Datasets."""

from __future__ import annotations

import bisect
import math
import warnings
from itertools import accumulate
from types import GenericAlias

import facula


class Dataset:
    """Base of datasets that are indexed: define `__getitem__`, and `__len__` for most samplers."""

    __class_getitem__ = classmethod(GenericAlias)

    def __getitem__(self, index):
        raise NotImplementedError(f"{type(self).__name__}: __getitem__() must be defined")

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Base of datasets that are iterated: define `__iter__`."""

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__}: __iter__() must be defined")

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
        rows = [tensor.size(0) for tensor in tensors]
        if rows and min(rows) != max(rows):
            raise AssertionError(f"TensorDataset: tensors must have one size(0); got {rows}")
        self.tensors = tensors

    def __len__(self):
        return self.tensors[0].size(0)

    def __getitem__(self, index):
        return tuple([rows[index] for rows in self.tensors])


class StackDataset(Dataset):
    """Items of several datasets side by side: a tuple, or a dict for keyword arguments.

    Raises:
        ValueError: different lengths, no datasets, or both kinds of arguments.
    """

    def __init__(self, *args, **kwargs):
        if args and kwargs:
            raise ValueError(
                "StackDataset: datasets come by position (tuples) or by name (dicts); got both"
            )
        if not args and not kwargs:
            raise ValueError("StackDataset: a dataset must be given")
        self.datasets = args or kwargs
        members = list(self._members())
        self._length = len(members[0])
        if any(len(d) != self._length for d in members):
            raise ValueError(
                f"StackDataset: datasets must have one length; got {[len(d) for d in members]}"
            )

    def _members(self):
        return self.datasets.values() if isinstance(self.datasets, dict) else self.datasets

    def _row(self, items):
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, items, strict=True))
        return tuple(items)

    def __getitem__(self, index):
        return self._row([dataset[index] for dataset in self._members()])

    def __getitems__(self, indices):
        columns = [_items(dataset, indices) for dataset in self._members()]
        return [self._row(items) for items in zip(*columns, strict=True)]

    def __len__(self):
        return self._length


def _items(dataset, indices):
    fetch = getattr(dataset, "__getitems__", None)
    if not callable(fetch):
        return [dataset[i] for i in indices]
    items = fetch(indices)
    if len(items) != len(indices):
        raise ValueError(
            f"StackDataset: __getitems__ of a dataset must give {len(indices)} "
            f"items; got {len(items)}"
        )
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
            raise AssertionError("ConcatDataset: datasets must not be empty")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset: datasets must be indexed; got an IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @property
    def cummulative_sizes(self):
        """`cumulative_sizes` by its name of old."""
        warnings.warn(
            "ConcatDataset.cummulative_sizes is deprecated: its name is cumulative_sizes",
            FutureWarning,
            stacklevel=2,
        )
        return self.cumulative_sizes

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx):
        total = len(self)
        if idx < -total:
            raise ValueError(f"ConcatDataset: index must be in [-{total}, {total}); got {idx}")
        position = idx + total if idx < 0 else idx
        which = bisect.bisect_right(self.cumulative_sizes, position)
        starts = [0, *self.cumulative_sizes]
        return self.datasets[which][position - starts[which]]


class ChainDataset(IterableDataset):
    """IterableDatasets one after another."""

    def __init__(self, datasets):
        super().__init__()
        self.datasets = datasets

    def __iter__(self):
        for dataset in self._members():
            yield from dataset

    def __len__(self):
        return sum(len(dataset) for dataset in self._members())

    def _members(self):
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError(
                    f"ChainDataset: expected IterableDatasets; got {type(dataset).__name__}"
                )
            yield dataset


class Subset(Dataset):
    """The items of `dataset` at `indices`."""

    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx):
        # A list is passed on as one index, which the dataset may know what to do with.
        chosen = self._chosen(idx) if isinstance(idx, list) else self.indices[idx]
        return self.dataset[chosen]

    def __getitems__(self, indices):
        fetch, chosen = getattr(self.dataset, "__getitems__", None), self._chosen(indices)
        return fetch(chosen) if callable(fetch) else [self.dataset[i] for i in chosen]

    def _chosen(self, indices):
        return [self.indices[i] for i in indices]

    def __len__(self):
        return len(self.indices)


def _counts(lengths, total):
    """Turn fractions into counts; what rounding leaves goes to the first ones in turn."""
    counts = []
    for i, fraction in enumerate(lengths):
        if not 0 <= fraction <= 1:
            raise ValueError(f"random_split(): fractions must be in [0, 1]; got {fraction} at {i}")
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

                warnings.warn(f"random_split(): part {i} gets no items", stacklevel=2)
    if sum(lengths) != len(dataset):
        raise ValueError(
            f"random_split(): lengths must add up to the dataset's {len(dataset)}; "
            f"got {sum(lengths)}"
        )
    generator = facula.default_generator if generator is None else generator
    indices = facula.randperm(sum(lengths), generator=generator).tolist()
    ends = accumulate(lengths)
    return [
        Subset(dataset, indices[end - length : end])
        for end, length in zip(ends, lengths, strict=True)
    ]
