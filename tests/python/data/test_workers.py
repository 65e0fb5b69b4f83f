"""DataLoader with workers: processes by each start method, and threads."""

import os
import random
import signal
import time

import facula
import pytest
from facula.utils import data

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")

CONTEXTS = ("fork", "forkserver", "spawn", "thread")
_BATCHES = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


class Squares(data.Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, i):
        return i, facula.full((100, 100), i * i), data.get_worker_info().id


class Uneven(data.IterableDataset):
    def __iter__(self):
        worker = data.get_worker_info().id
        return iter(range(worker * 10, worker * 13 + 3))


class Counting(data.IterableDataset):
    """Knows where it is."""

    def __init__(self):
        self.next = 0

    def __iter__(self):
        while self.next < 9:
            self.next += 1
            yield self.next - 1

    def state_dict(self):
        return {"next": self.next}

    def load_state_dict(self, state):
        self.next = state["next"]


class Draws(data.Dataset):
    def __len__(self):
        return 20

    def __getitem__(self, i):
        return i, random.random(), facula.rand(2)


class Bad(data.Dataset):
    """Each item goes wrong in another way."""

    def __len__(self):
        return 9

    def __getitem__(self, i):
        if i == "raise":
            raise ValueError("a bad item")
        if i == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if i == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if i == "leave":
            os._exit(3)
        if i == "stick":
            time.sleep(60)
        if i == "unpicklable":
            return lambda: None
        return i


def _plain(batch):
    return [v.tolist() if isinstance(v, facula.Tensor) else v for v in batch]


@pytest.mark.parametrize("context", CONTEXTS)
def test_batches_come_in_order(context):
    loader = data.DataLoader(
        Squares(), batch_size=4, num_workers=2, multiprocessing_context=context
    )
    batches = list(loader)
    assert [b[0].tolist() for b in batches] == _BATCHES
    assert [b[2].unique().tolist() for b in batches] == [[0], [1], [0]]
    for index, squares, _ in batches:
        assert squares[:, 3, 4].tolist() == [i * i for i in index.tolist()]
        assert squares.is_shared() == (context != "thread")


@pytest.mark.parametrize("context", ("fork", "thread"))
def test_parts_of_an_iterable_dataset_end_by_themselves(context):
    loader = data.DataLoader(Uneven(), batch_size=2, num_workers=2, multiprocessing_context=context)
    assert [b.tolist() for b in loader] == [[0, 1], [10, 11], [2], [12, 13], [14, 15]]


def test_batches_as_they_come_are_complete():
    loader = data.DataLoader(Squares(), batch_size=2, num_workers=2, in_order=False)
    assert sorted(i for b in loader for i in b[0].tolist()) == list(range(10))


def test_workers_that_persist_are_the_same_processes():
    loader = data.DataLoader(Squares(), num_workers=2, persistent_workers=True)
    assert len(list(loader)) == 10
    before = [w.pid for w in loader._iterator._workers]
    iterator = iter(loader)
    next(iterator)  # an epoch that is given up
    assert [b[0].item() for b in loader] == list(range(10))
    assert [w.pid for w in loader._iterator._workers] == before


def test_processes_end_with_the_iteration():
    loader = data.DataLoader(Squares(), num_workers=2)
    iterator = iter(loader)
    workers = iterator._workers
    next(iterator)
    assert all(w.is_alive() for w in workers)
    del iterator
    assert not any(w.is_alive() for w in workers)


def test_no_segment_stays_behind():
    before = facula._C._shared_memory_stats()
    for batch in data.DataLoader(Squares(), batch_size=5, num_workers=2):
        assert batch[1].is_shared()
    del batch
    assert facula._C._shared_memory_stats() == before


class Large(data.Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        return facula.full((400_000,), float(i))


def test_memory_of_batches_serves_again_once_they_are_gone():
    loader = data.DataLoader(Large(), batch_size=None, num_workers=2, persistent_workers=True)
    held = list(loader)
    for _ in range(2):
        for i, batch in enumerate(loader):
            assert batch.unique().tolist() == [i]
    assert [b.unique().tolist() for b in held] == [[i] for i in range(12)]
    assert facula._C._shared_memory_stats()["segments"] < 12 + 10
    held.clear()
    del batch, loader
    assert facula._C._shared_memory_stats()["segments"] == 0


ENDS = {
    "raise": (ValueError, "Caught ValueError in DataLoader worker process 0(.|\n)*a bad item"),
    "kill": (RuntimeError, r"worker \(pid\(s\) \d+\) exited unexpectedly: worker 0, .*SIGKILL"),
    "crash": (RuntimeError, "SIGSEGV(.|\n)*Segmentation fault(.|\n)*in __getitem__"),
    "leave": (RuntimeError, "exit status was 3"),
    "stick": (RuntimeError, r"timed out after 0.5 seconds: worker 0(.|\n)*in __getitem__"),
    "unpicklable": (AttributeError, "in DataLoader worker process 0(.|\n)*pickle"),
}


@pytest.mark.parametrize("end", ENDS)
def test_what_ends_a_worker_is_told(end):
    kind, text = ENDS[end]
    loader = data.DataLoader(
        Bad(), sampler=[end], batch_size=None, num_workers=1, timeout=0.5 if end == "stick" else 0
    )
    with pytest.raises(kind, match=text):
        list(loader)


def test_a_thread_that_is_stuck_is_told():
    loader = data.DataLoader(
        Bad(), sampler=["stick"], num_workers=1, timeout=0.2, multiprocessing_context="thread"
    )
    with pytest.raises(RuntimeError, match="timed out(.|\n)*in __getitem__"):
        list(loader)


def test_iteration_goes_on_after_an_error():
    loader = data.DataLoader(
        Bad(),
        sampler=[1, "raise", 3],
        batch_size=None,
        num_workers=1,
        multiprocessing_context="fork",
    )
    iterator = iter(loader)
    assert next(iterator) == 1
    with pytest.raises(ValueError, match="a bad item"):
        next(iterator)
    assert next(iterator) == 3


def _seen(worker_id):
    facula.utils.data.get_worker_info().dataset.seen = worker_id


def test_init_function_runs_in_each_worker():
    class Seen(data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return self.seen

    loader = data.DataLoader(Seen(), num_workers=2, worker_init_fn=_seen)
    assert [b.item() for b in loader] == [0, 1, 0, 1]


@pytest.mark.parametrize("workers", (0, 2))
@pytest.mark.parametrize("generator", (False, True))
def test_iteration_resumes_exactly(workers, generator):
    def loader(seed):
        facula.manual_seed(seed)
        random.seed(seed)
        own = facula.Generator().manual_seed(seed) if generator else None
        return data.DataLoader(
            Draws(), batch_size=2, shuffle=True, num_workers=workers, generator=own
        )

    first = loader(3)
    list(first)
    iterator = iter(first)
    for _ in range(4):
        next(iterator)
    state = first.state_dict()
    process = facula.get_rng_state(), random.getstate()
    rest = [_plain(b) for b in iterator]
    second = loader(99)
    second.load_state_dict(state)
    facula.set_rng_state(process[0])
    random.setstate(process[1])
    assert [_plain(b) for b in second] == rest
    assert len(list(second)) == 10  # the next epoch is whole


@pytest.mark.parametrize("workers", (0, 2))
@pytest.mark.parametrize("dataset", (Uneven, Counting))
def test_iterable_datasets_resume(workers, dataset):
    if workers == 0 and dataset is Uneven:
        pytest.skip("its parts belong to workers")
    first = data.DataLoader(dataset(), batch_size=2, num_workers=workers)
    iterator = iter(first)
    for _ in range(3):
        next(iterator)
    state = first.state_dict()
    rest = [b.tolist() for b in iterator]
    assert rest
    second = data.DataLoader(dataset(), batch_size=2, num_workers=workers)
    second.load_state_dict(state)
    assert [b.tolist() for b in second] == rest


def test_state_of_another_number_of_workers_is_refused():
    loader = data.DataLoader(Draws(), num_workers=0)
    iterator = iter(loader)
    next(iterator)
    with pytest.raises(ValueError, match="1 workers; got one with 0"):
        data.DataLoader(Draws(), num_workers=1).load_state_dict(loader.state_dict())


def test_more_workers_than_cores_warn():
    with pytest.warns(UserWarning, match="will create 4096 workers"):
        data.DataLoader(Draws(), num_workers=4096)


def test_collate_map_takes_types_of_the_user():
    from facula.utils.data._utils.collate import collate, default_collate_fn_map

    class Point:
        pass

    known = {**default_collate_fn_map, Point: lambda batch, *, collate_fn_map: len(batch)}
    made = collate([(Point(), 1), (Point(), 2)], collate_fn_map=known)
    assert made[0] == 2 and made[1].tolist() == [1, 2]
    with pytest.raises(TypeError):
        collate([1], collate_fn_map={})
