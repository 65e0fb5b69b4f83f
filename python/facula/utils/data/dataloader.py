"""DataLoader: batches of a dataset, made in this process."""

from __future__ import annotations

from types import GenericAlias

import facula
from facula.utils.data._utils import default_collate, default_convert
from facula.utils.data.dataset import IterableDataset
from facula.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler


class _DatasetKind:
    """Numbers of the two kinds of datasets."""

    Map = 0
    Iterable = 1


class _InfiniteConstantSampler(Sampler):
    """None for ever: the "indices" of an iterable dataset."""

    def __iter__(self):
        while True:
            yield None


def get_worker_info():
    """What a worker process knows of itself; None, as there are no worker processes."""
    return None


def _check_workers(num_workers, timeout, prefetch_factor, persistent_workers):
    if num_workers < 0:
        raise ValueError(
            "DataLoader: num_workers must not be negative, 0 loads in this process; "
            f"got {num_workers}"
        )
    if timeout < 0:
        raise ValueError(f"DataLoader: timeout must not be negative; got {timeout}")
    if prefetch_factor is not None:
        if num_workers == 0:
            raise ValueError("DataLoader: prefetch_factor needs num_workers > 0; got 0")
        if prefetch_factor < 0:
            raise ValueError(
                f"DataLoader: prefetch_factor must not be negative; got {prefetch_factor}"
            )
    if persistent_workers and num_workers == 0:
        raise ValueError("DataLoader: persistent_workers needs num_workers > 0; got 0")
    if num_workers > 0:
        raise NotImplementedError(
            f"DataLoader(): num_workers must be 0, got {num_workers}: worker processes are not "
            "implemented yet"
        )


def _default_sampler(dataset, iterable, shuffle, generator):
    if iterable:
        return _InfiniteConstantSampler()
    if shuffle:
        return RandomSampler(dataset, generator=generator)
    return SequentialSampler(dataset)


class DataLoader:
    """Iterates over a dataset in batches.

    Args:
        dataset: map-style or iterable.
        batch_size: items per batch; None to give single items.
        shuffle: take the items in random order, another one each epoch.
        sampler: order of the indices. batch_sampler: lists of indices.
        num_workers: must be 0.
        collate_fn: makes a batch of a list of items.
        pin_memory: copy tensors to pinned memory when there is an accelerator.
        drop_last: leave out a last batch that is not full.
        generator: source of random numbers.
        timeout, worker_init_fn, multiprocessing_context, prefetch_factor, persistent_workers,
        pin_memory_device, in_order: for worker processes.

    Raises:
        ValueError: settings that exclude each other.
        NotImplementedError: `num_workers` above 0.

    Example:
        >>> data = TensorDataset(facula.arange(4))
        >>> [len(batch[0]) for batch in DataLoader(data, batch_size=3)]
        [3, 1]
    """

    __initialized = False
    _iterator = None

    __class_getitem__ = classmethod(GenericAlias)

    def __init__(
        self,
        dataset,
        batch_size=1,
        shuffle=None,
        sampler=None,
        batch_sampler=None,
        num_workers=0,
        collate_fn=None,
        pin_memory=False,
        drop_last=False,
        timeout=0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor=None,
        persistent_workers=False,
        pin_memory_device="",
        in_order=True,
    ):
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        if multiprocessing_context is not None:
            raise ValueError(
                f"DataLoader: multiprocessing_context needs num_workers > 0; got {num_workers}"
            )
        iterable = isinstance(dataset, IterableDataset)
        self._dataset_kind = _DatasetKind.Iterable if iterable else _DatasetKind.Map
        if iterable:
            self._check_iterable(shuffle, sampler, batch_sampler)
        shuffle = bool(shuffle)
        batch_size, drop_last = self._check_batching(
            batch_size, shuffle, sampler, batch_sampler, drop_last
        )
        if sampler is None:
            sampler = _default_sampler(dataset, iterable, shuffle, generator)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate
        vars(self).update(
            batch_size=batch_size,
            batch_sampler=batch_sampler,
            collate_fn=collate_fn,
            dataset=dataset,
            drop_last=drop_last,
            generator=generator,
            in_order=in_order,
            multiprocessing_context=None,
            num_workers=num_workers,
            persistent_workers=persistent_workers,
            pin_memory=pin_memory,
            pin_memory_device=pin_memory_device,
            prefetch_factor=prefetch_factor,
            sampler=sampler,
            timeout=timeout,
            worker_init_fn=worker_init_fn,
            _IterableDataset_len_called=None,
        )
        self.__initialized = True

    @staticmethod
    def _check_iterable(shuffle, sampler, batch_sampler):
        given = {
            "shuffle": None if shuffle is False else shuffle,
            "sampler": sampler,
            "batch_sampler": batch_sampler,
        }
        for name, value in given.items():
            if value is not None:
                raise ValueError(
                    "DataLoader: an IterableDataset has an order of its own and takes "
                    f"no {name}; got {value}"
                )

    @staticmethod
    def _check_batching(batch_size, shuffle, sampler, batch_sampler, drop_last):
        """The batch size and drop_last to keep, once the options do not exclude each other."""
        if sampler is not None and shuffle:
            raise ValueError("DataLoader: sampler and shuffle exclude each other; got both")
        if batch_sampler is None:
            if drop_last and batch_size is None:
                raise ValueError("DataLoader: drop_last needs batches; got batch_size=None")
            return batch_size, drop_last
        others = {
            "batch_size": batch_size != 1,
            "shuffle": shuffle,
            "sampler": sampler is not None,
            "drop_last": drop_last,
        }
        if any(others.values()):
            raise ValueError(
                "DataLoader: batch_sampler decides on the batches, so it excludes "
                f"{', '.join(name for name, given in others.items() if given)}"
            )
        return None, False

    def __setattr__(self, name, value):
        fixed = (
            "batch_size",
            "batch_sampler",
            "sampler",
            "drop_last",
            "dataset",
            "persistent_workers",
        )
        if self.__initialized and name in fixed:
            raise ValueError(f"{type(self).__name__}: {name} cannot be changed")
        object.__setattr__(self, name, value)

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self):
        return _SingleProcessDataLoaderIter(self)

    def __len__(self):
        if self._dataset_kind != _DatasetKind.Iterable:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        full, rest = divmod(length, self.batch_size)
        return full + (1 if rest and not self.drop_last else 0)


class _SingleProcessDataLoaderIter:
    """One pass over a loader's dataset."""

    def __init__(self, loader):
        self._loader = loader
        self._index_iter = iter(loader._index_sampler)
        # The seed that workers would get; drawn here too, so that it shifts later numbers alike.
        self._base_seed = (
            facula.empty((), dtype=facula.int64).random_(generator=loader.generator).item()
        )
        self._pin_memory = loader.pin_memory and _can_pin()
        self._yielded = 0
        iterable = loader._dataset_kind == _DatasetKind.Iterable
        self._items = iter(loader.dataset) if iterable else None
        self._ended = False

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._loader._index_sampler)

    def __next__(self):
        index = next(self._index_iter)
        data = self._fetch(index) if self._items is None else self._fetch_next(index)
        if self._pin_memory:
            data = _pinned(data)
        self._yielded += 1
        if self._items is not None:
            self._warn_length()
        return data

    def _fetch(self, index):
        loader = self._loader
        dataset = loader.dataset
        if not loader._auto_collation:
            return loader.collate_fn(dataset[index])
        fetch = getattr(dataset, "__getitems__", None)
        items = fetch(index) if fetch else [dataset[i] for i in index]
        return loader.collate_fn(items)

    def _fetch_next(self, index):
        loader = self._loader
        if self._ended:
            raise StopIteration
        if not loader._auto_collation:
            return loader.collate_fn(next(self._items))
        items = []
        for _ in index:
            try:
                items.append(next(self._items))
            except StopIteration:
                self._ended = True
                break
        if not items or (loader.drop_last and len(items) < len(index)):
            raise StopIteration
        return loader.collate_fn(items)

    def _warn_length(self):
        length = self._loader._IterableDataset_len_called
        if length is None or self._yielded <= len(self._loader):
            return
        import warnings

        warnings.warn(
            f"DataLoader: the IterableDataset said that its length is {length}; got more "
            f"than that, {self._yielded} items or batches so far",
            stacklevel=3,
        )


_BaseDataLoaderIter = _SingleProcessDataLoaderIter


def _can_pin():
    if facula.cuda.is_available():
        return True
    import warnings

    warnings.warn("DataLoader: pin_memory does nothing without an accelerator", stacklevel=4)
    return False


def _pinned(data):
    """`data` with its tensors in pinned memory."""
    pin = getattr(data, "pin_memory", None)
    if pin is not None:
        return pin()
    if isinstance(data, dict):
        return {k: _pinned(v) for k, v in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(_pinned(v) for v in data))
    if isinstance(data, (tuple, list)):
        return [_pinned(v) for v in data]
    return data
