"""What a worker of the loader runs."""

from __future__ import annotations

import threading

from facula._utils import ExceptionWrapper
from facula.utils.data._utils.fetch import PipeSeeds, fetcher_for, is_datapipe

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds between looks at whether the parent lives


class WorkerInfo:
    """What a worker knows of itself.

    Args:
        id (int): its number, from 0 on.
        num_workers (int): how many workers there are.
        seed (int): of its generators.
        dataset: its copy of the dataset.
    """

    def __init__(self, **known):
        self.__dict__.update(known)
        self.__dict__["_names"] = tuple(known)

    def __setattr__(self, name, value):
        raise RuntimeError(f"WorkerInfo: the attributes of a worker cannot be changed; got {name}")

    def __repr__(self):
        shown = ", ".join(f"{name}={getattr(self, name)}" for name in self._names)
        return f"{type(self).__name__}({shown})"


_here = threading.local()  # a worker may be a thread
_of_process = None


def set_worker_info(info, in_process):
    """Say what get_worker_info() gives: in this process, or in this thread alone."""
    global _of_process
    if in_process:
        _of_process = info
    else:
        _here.info = info


def get_worker_info():
    """What the worker that asks knows of itself, as a WorkerInfo; None outside of workers."""
    return getattr(_here, "info", _of_process)


class Settings:
    """What a worker is told when it starts.

    Not a dataclass: `dataclasses` imports `inspect`, a fifth of what a spawned worker takes to
    start.
    """

    def __init__(
        self,
        worker_id,
        num_workers,
        base_seed,
        dataset,
        iterable,
        auto_collation,
        collate_fn,
        drop_last,
        init_fn,
        resume=None,
        shared_seed=None,
    ):
        self.worker_id, self.num_workers, self.base_seed = worker_id, num_workers, base_seed
        self.dataset, self.iterable, self.auto_collation = dataset, iterable, auto_collation
        self.collate_fn, self.drop_last, self.init_fn = collate_fn, drop_last, init_fn
        # {"skip": items, "dataset": state, "random": states}; None at the beginning
        self.resume = resume
        self.shared_seed = shared_seed  # of datapipes

    def info(self):
        """The worker's own account."""
        return WorkerInfo(
            id=self.worker_id,
            num_workers=self.num_workers,
            seed=self.base_seed + self.worker_id,
            dataset=self.dataset,
        )


class Work:
    """Answers tasks until it is told to stop.

    Args:
        settings (Settings): of this worker.
        take (callable): gives the next task: (epoch, number, index), an epoch that begins, or None
            to stop.
        newest (callable): gives the newest epoch; tasks of older ones are left out.
        give (callable): takes an answer: (epoch, number, kind, data, state).
        states (callable): gives the states of generators that changed; None where they are not
            the worker's own.
    """

    def __init__(self, settings, take, newest, give, states):
        self.settings, self.take, self.newest = settings, take, newest
        self.give, self.states = give, states
        self.fetcher = self.problem = self.pipe_seeds = None
        self.ended = False

    def run(self):
        """Work until the end."""
        self._attempt(self._begin)
        while (task := self.take()) is not None:
            if isinstance(task, int):
                self.settings.resume = None
                self.problem = None
                self._attempt(self._new_fetcher)
            elif task[0] == self.newest() and not self.ended:
                self._answer(*task)

    def _attempt(self, step):
        try:
            step()
        except Exception:
            self.problem = self._wrapped()

    def _wrapped(self):
        """The exception that is handled, for the parent to raise."""
        return ExceptionWrapper(where=f"in DataLoader worker process {self.settings.worker_id}")

    def _begin(self):
        s = self.settings
        self._take_part()
        if s.init_fn is not None:
            s.init_fn(s.worker_id)
        if s.resume and s.resume.get("dataset") is not None:
            s.dataset.load_state_dict(s.resume["dataset"])
        self._new_fetcher()
        if s.resume:
            if s.iterable and s.resume.get("dataset") is None:
                self.fetcher.skip(s.resume["skip"])
            if s.resume["random"] and self.states is not None:
                from facula.utils.data._utils.seeds import set_random_states

                set_random_states(s.resume["random"])

    def _take_part(self):
        """Have a datapipe give this worker's part."""
        s = self.settings
        self.pipe_seeds = PipeSeeds(s.shared_seed)
        if not is_datapipe(s.dataset):
            return
        if self.states is None:  # threads have one dataset, and each changes its own
            import copy

            s.dataset = copy.deepcopy(s.dataset)
        from facula.utils.data.graph_settings import apply_sharding

        apply_sharding(s.dataset, s.num_workers, s.worker_id)

    def _new_fetcher(self):
        s = self.settings
        self.pipe_seeds.apply(s.dataset)
        self.ended = False
        self.fetcher = fetcher_for(
            s.iterable, s.dataset, s.auto_collation, s.collate_fn, s.drop_last
        )

    def _answer(self, epoch, number, index):
        kind, data = self._fetched(index)
        state = {}
        if kind == "data":
            if self.states is not None:
                state["random"] = self.states()
            if self.settings.iterable:
                state["dataset"] = self._dataset_state()
        try:
            self.give((epoch, number, kind, data, state))
        except BrokenPipeError:
            raise
        except Exception:  # the batch cannot be sent
            self.give((epoch, number, "error", self._wrapped(), {}))

    def _fetched(self, index):
        if self.problem is not None:
            problem, self.problem = self.problem, None
            return "error", problem
        try:
            return "data", self.fetcher.fetch(index)
        except StopIteration:
            if not self.settings.iterable:
                return "error", self._wrapped()
            self.ended = True
            return "end", None
        except Exception:
            return "error", self._wrapped()

    def _dataset_state(self):
        state = getattr(self.settings.dataset, "state_dict", None)
        return state() if callable(state) else None
