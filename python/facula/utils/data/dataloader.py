"""DataLoader: batches of a dataset, made in this process or by workers."""

from __future__ import annotations

from types import GenericAlias
from weakref import ref

from facula.utils.data._iterators import (  # noqa: F401
    _BaseDataLoaderIter,
    _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter,
)
from facula.utils.data._utils import default_collate, default_convert
from facula.utils.data._utils.fetch import is_datapipe
from facula.utils.data._utils.worker import get_worker_info  # noqa: F401
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


def _context_of(asked, num_workers):
    """The context of multiprocessing that is asked for; "thread" stays a text."""
    if asked is None or asked == "thread" and num_workers > 0:
        return asked
    if num_workers == 0:
        raise ValueError(
            f"DataLoader: multiprocessing_context needs num_workers > 0; got {num_workers}"
        )
    import multiprocessing
    from multiprocessing.context import BaseContext

    if isinstance(asked, str):
        methods = multiprocessing.get_all_start_methods()
        if asked not in methods:
            raise ValueError(
                "DataLoader: multiprocessing_context must be a start method in "
                f"{[*methods, 'thread']}; got {asked!r}"
            )
        return multiprocessing.get_context(asked)
    if not isinstance(asked, BaseContext):
        raise TypeError(
            "DataLoader: multiprocessing_context must be a context or the name of a start method; "
            f"got {asked!r}"
        )
    return asked


def _warn_many_workers(num_workers):
    import os

    cores = len(os.sched_getaffinity(0))
    if num_workers > cores:
        import warnings

        warnings.warn(
            f"This DataLoader will create {num_workers} workers; this process may use {cores} "
            "cores, and more workers than cores make loading slower",
            stacklevel=4,
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
        num_workers: workers that load ahead; 0 to load in this process.
        collate_fn: makes a batch of a list of items.
        pin_memory: copy tensors to pinned memory when there is an accelerator.
        drop_last: leave out a last batch that is not full.
        generator: source of random numbers.
        timeout: seconds to wait for a batch of a worker; 0 to wait for ever.
        worker_init_fn: called with its number in each worker, once its generators are seeded.
        multiprocessing_context: how workers start: a context, "fork", "forkserver" or "spawn"; or
            "thread": they are threads, which share the dataset and the random generators.
        prefetch_factor: batches that each worker loads ahead; 2 when None.
        persistent_workers: keep the workers for the next epochs.
        pin_memory_device: ignored, as in PyTorch.
        in_order: give batches in the order of the indices, not as they come.

    Raises:
        ValueError, TypeError: settings that exclude each other, or bad ones.

    Example:
        >>> from facula.utils.data import DataLoader, TensorDataset
        >>> data = TensorDataset(facula.arange(4))
        >>> [len(batch[0]) for batch in DataLoader(data, batch_size=3)]
        [3, 1]
    """

    __initialized = False
    _iterator = None  # kept for the next epochs, where its workers persist
    _current = None  # a weak reference to the newest one
    _resume = None  # the state that the next one begins with

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
        self.num_workers = num_workers
        self.multiprocessing_context = multiprocessing_context
        if num_workers > 0 and prefetch_factor is None:
            prefetch_factor = 2
        iterable = isinstance(dataset, IterableDataset)
        self._dataset_kind = _DatasetKind.Iterable if iterable else _DatasetKind.Map
        if is_datapipe(dataset):
            from facula.utils.data.graph_settings import apply_shuffle_settings

            dataset = apply_shuffle_settings(dataset, shuffle=shuffle)
            shuffle = None
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
        self.check_worker_number_rationality()

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

    def check_worker_number_rationality(self):
        """Warn where there are more workers than processors that this process may use.

        Example:
            >>> facula.utils.data.DataLoader([1, 2]).check_worker_number_rationality()
        """
        _warn_many_workers(self.num_workers)

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

    @property
    def multiprocessing_context(self):
        """How workers start: a context, "thread", or None for the default."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, asked):
        self._context = _context_of(asked, self.num_workers)

    def _get_iterator(self, resume=None):
        kind = _MultiProcessingDataLoaderIter if self.num_workers else _SingleProcessDataLoaderIter
        iterator = kind(self, resume)
        self._current = ref(iterator)
        return iterator

    def __iter__(self):
        resume, self._resume = self._resume, None
        if not self.persistent_workers:
            return self._get_iterator(resume)
        if self._iterator is None or resume is not None:
            self._iterator = self._get_iterator(resume)
        else:
            self._iterator._reset(self)
            self._current = ref(self._iterator)
        return self._iterator

    def __len__(self):
        if self._dataset_kind != _DatasetKind.Iterable:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        full, rest = divmod(length, self.batch_size)
        return full + (1 if rest and not self.drop_last else 0)

    def state_dict(self):
        """Where the iteration is, for load_state_dict() of a loader that is made alike.

        Batches that workers loaded ahead count as not yet given. The states of the workers'
        random generators are a part of it. A dataset that is iterated may have `state_dict` and
        `load_state_dict` of its own; otherwise its first items are passed over on resuming.

        Returns:
            dict: of numbers, texts, bytes and tuples.
        """
        iterator = self._current() if self._current is not None else None
        if iterator is not None:
            return iterator._state_dict()
        return dict(self._resume) if self._resume else {"yielded": 0}

    def load_state_dict(self, state):
        """Have the next iteration begin with the batch after those that `state` has seen.

        Args:
            state (dict): of state_dict().

        Raises:
            ValueError: it comes from a loader with another number of workers.

        Example:
            >>> from facula.utils.data import DataLoader, TensorDataset
            >>> loader = DataLoader(TensorDataset(facula.arange(4)))
            >>> iterator = iter(loader)
            >>> _ = next(iterator)
            >>> state = loader.state_dict()
            >>> loader.load_state_dict(state)
            >>> len(list(loader))
            3
        """
        if state["yielded"] and state["num_workers"] != self.num_workers:
            raise ValueError(
                f"DataLoader.load_state_dict(): expected the state of a loader with "
                f"{self.num_workers} workers; got one with {state['num_workers']}"
            )
        self._resume = state if state["yielded"] else None
