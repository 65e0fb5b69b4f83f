"""One pass over a loader's dataset: in this process, or with workers."""

from __future__ import annotations

import itertools
import time

import facula
from facula.utils.data._utils.fetch import PipeSeeds, fetcher_for, is_datapipe
from facula.utils.data._utils.pin_memory import can_pin, pin_memory
from facula.utils.data._utils.resume import EpochStart


def _without_iterator(loader):
    """A copy of a loader that does not keep its iterator, and so the workers, alive."""
    copied = object.__new__(type(loader))
    vars(copied).update(vars(loader), _iterator=None)
    return copied


class _BaseDataLoaderIter:
    """What both iterators do: the indices, the seed of the workers, and counting.

    Args:
        loader (DataLoader): what is iterated.
        resume (dict): a state of state_dict() to begin with; None for the beginning.
    """

    _persistent = False

    def __init__(self, loader, resume=None):
        self._loader = _without_iterator(loader)
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._iterable = loader._dataset_kind == 1
        self._num_workers = loader.num_workers
        self._timeout = loader.timeout
        self._pin_memory = loader.pin_memory and can_pin()
        self._base_seed = self._shared_seed = None
        self._begin_epoch(resume)

    def _begin_epoch(self, resume):
        loader = self._loader
        self._finished = False
        self._num_yielded = resume["yielded"] if resume else 0
        self._start = EpochStart(loader, resume and resume["start"])
        draw_seed = resume["draw_seed"] if resume else self._base_seed is None
        self._draw_shared_seed(resume)
        with self._start.replayed(loader, bool(resume)):
            self._sampler_iter = iter(loader._index_sampler)
            if draw_seed:
                # Drawn without workers, too, so that later numbers are the same.
                seed = facula.empty((), dtype=facula.int64).random_(generator=loader.generator)
                self._base_seed = int(seed)
            for _ in range(self._num_yielded):
                next(self._sampler_iter)
        if resume:
            self._base_seed = resume["base_seed"]
        self._draw_seed = draw_seed

    def _draw_shared_seed(self, resume):
        """For datapipes, the seed that all workers have in common."""
        if resume:
            self._shared_seed = resume.get("shared_seed")
        elif self._shared_seed is None and is_datapipe(self._dataset):
            generator = self._loader.generator
            self._shared_seed = int(
                facula.empty((), dtype=facula.int64).random_(generator=generator)
            )

    def _state_dict(self):
        if self._finished or not self._num_yielded:
            return {"yielded": 0}
        return {
            "shared_seed": self._shared_seed,
            "yielded": self._num_yielded,
            "start": self._start.state,
            "draw_seed": self._draw_seed,
            "base_seed": self._base_seed,
            "num_workers": self._num_workers,
        }

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._loader._index_sampler)

    def _next_index(self):
        return next(self._sampler_iter)

    def __next__(self):
        try:
            data = self._next_data()
        except StopIteration:
            self._finished = True
            raise
        self._num_yielded += 1
        if self._iterable:
            self._warn_length()
        return pin_memory(data) if self._pin_memory else data

    def _warn_length(self):
        length = self._loader._IterableDataset_len_called
        if length is None or self._num_yielded <= len(self._loader):
            return
        import warnings

        warnings.warn(
            f"DataLoader: the IterableDataset said that its length is {length}; got more "
            f"than that, {self._num_yielded} items or batches so far",
            stacklevel=3,
        )

    def _items(self, batches):
        """How many items so many batches have."""
        size = self._loader.batch_size
        return batches if size is None else batches * size


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Loads in this process, when a batch is asked for."""

    def __init__(self, loader, resume=None):
        super().__init__(loader, resume)
        kept = resume.get("dataset") if resume else None
        if kept is not None:
            self._dataset.load_state_dict(kept)
        PipeSeeds(self._shared_seed).apply(self._dataset)
        self._fetcher = fetcher_for(
            self._iterable,
            self._dataset,
            loader._auto_collation,
            loader.collate_fn,
            loader.drop_last,
        )
        if resume and self._iterable and kept is None:
            self._fetcher.skip(self._items(self._num_yielded))

    def _next_data(self):
        return self._fetcher.fetch(self._next_index())

    def _state_dict(self):
        state = super()._state_dict()
        if state["yielded"] and self._iterable and hasattr(self._dataset, "state_dict"):
            state["dataset"] = self._dataset.state_dict()
        return state


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Has workers load ahead.

    Tasks are numbered as they are given out, to the workers in turn. An answer waits in `_arrived`
    until its number is the next one.
    """

    _shut = False
    _pool = None

    def __init__(self, loader, resume=None):
        super().__init__(loader, resume)
        self._in_order = loader.in_order
        self._persistent = loader.persistent_workers
        n = self._num_workers
        self._yielded_by = list(resume["yielded_by"]) if resume else [0] * n
        self._states = [dict(s) for s in resume["states"]] if resume else [{} for _ in range(n)]
        self._datasets = list(resume["datasets"]) if resume else [None] * n
        self._pool = _new_pool(loader, self._settings(bool(resume)))
        self._workers = self._pool.workers
        self._epoch = 0
        self._give_out(resume["next_worker"] if resume else 0)

    def _settings(self, resumes):
        from facula.utils.data._utils.worker import Settings

        loader = self._loader
        return [
            Settings(
                worker_id=i,
                num_workers=self._num_workers,
                base_seed=self._base_seed,
                dataset=loader.dataset,
                iterable=self._iterable,
                auto_collation=loader._auto_collation,
                collate_fn=loader.collate_fn,
                drop_last=loader.drop_last,
                init_fn=loader.worker_init_fn,
                shared_seed=self._shared_seed,
                resume={
                    "skip": self._items(self._yielded_by[i]),
                    "random": self._states[i],
                    "dataset": self._datasets[i],
                }
                if resumes
                else None,
            )
            for i in range(self._num_workers)
        ]

    def _reset(self, loader, first_iter=False):
        """Begin another epoch with the same workers."""
        self._loader = _without_iterator(loader)
        self._begin_epoch(None)
        self._yielded_by = [0] * self._num_workers
        self._epoch += 1
        self._pool.begin_epoch(self._epoch)
        self._give_out(0)

    def _give_out(self, first_worker):
        self._tasks = {}  # number -> worker, in order: those that were not given to the user
        self._arrived = {}  # number -> (kind, data, state)
        self._numbers = itertools.count()
        self._active = [True] * self._num_workers
        self._turn = first_worker
        self._next_worker = first_worker  # whose batch comes after the one that was given last
        for _ in range(self._loader.prefetch_factor * self._num_workers):
            self._try_put_index()

    def _try_put_index(self):
        if len(self._tasks) >= self._loader.prefetch_factor * sum(self._active):
            return
        try:
            index = self._next_index()
        except StopIteration:
            return
        worker, number = self._worker_in_turn(), next(self._numbers)
        self._tasks[number] = worker
        self._pool.send(worker, (self._epoch, number, index))

    def _worker_in_turn(self):
        n = self._num_workers
        turns = [(self._turn + i) % n for i in range(n)]
        free = [w for w in turns if self._active[w]]
        worker = free[0]
        if not self._in_order:
            busy = list(self._tasks.values())
            worker = min(free, key=busy.count)
        self._turn = (worker + 1) % n
        return worker

    def _next_data(self):
        limit = time.monotonic() + self._timeout if self._timeout > 0 else None
        while (number := self._ready()) is None:
            if not self._tasks:
                self._finished = True
                if not self._persistent:
                    self._shutdown_workers()
                raise StopIteration
            self._receive(limit)
        worker = self._tasks.pop(number)
        kind, data, state = self._arrived.pop(number)
        self._try_put_index()
        self._note(worker, state)
        if kind == "error":
            data.reraise()
        return data

    def _ready(self):
        """The number of the answer to give now; None where it has not come."""
        if not self._in_order:
            return next(iter(self._arrived), None)
        number = next(iter(self._tasks), None)
        return number if number in self._arrived else None

    def _note(self, worker, state):
        self._yielded_by[worker] += 1
        self._next_worker = (worker + 1) % self._num_workers
        self._states[worker].update(state.get("random") or {})
        if "dataset" in state:
            self._datasets[worker] = state["dataset"]

    def _receive(self, limit):
        wait = None if limit is None else max(0.0, limit - time.monotonic())
        got = self._pool.receive(wait)
        if got is None:
            worker = next(iter(self._tasks.values()))
            raise RuntimeError(
                f"DataLoader timed out after {self._timeout} seconds: {self._pool.describe(worker)}"
            )
        worker, (epoch, number, kind, data, state) = got
        if epoch != self._epoch or number not in self._tasks:
            return
        if kind == "end":
            self._mark_worker_as_unavailable(worker)
            self._try_put_index()
        else:
            self._arrived[number] = kind, data, state

    def _mark_worker_as_unavailable(self, worker):
        """A worker's part of the dataset is at its end: it answers no more tasks."""
        self._active[worker] = False
        unanswered = [
            number
            for number, w in self._tasks.items()
            if w == worker and number not in self._arrived
        ]
        for number in unanswered:
            del self._tasks[number]

    def _state_dict(self):
        state = super()._state_dict()
        if state["yielded"]:
            state["yielded_by"] = tuple(self._yielded_by)
            state["next_worker"] = self._next_worker
            state["states"] = tuple(dict(s) for s in self._states)
            state["datasets"] = tuple(self._datasets)
        return state

    def _shutdown_workers(self):
        if self._shut or self._pool is None:
            return
        self._shut = True
        self._pool.close()

    def __del__(self):
        self._shutdown_workers()


def _new_pool(loader, settings):
    context = loader.multiprocessing_context
    if context == "thread":
        from facula.utils.data._utils.thread_pool import ThreadPool

        return ThreadPool(settings)
    import multiprocessing

    from facula.utils.data._utils.process_pool import ProcessPool

    return ProcessPool(settings, context or multiprocessing.get_context())
