"""facula.multiprocessing: tensors in memory that processes share."""

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import facula
import facula.multiprocessing as mp
import pytest
from facula import nn

sys.path.insert(0, str(Path(__file__).parent))
import process_functions as work  # noqa: E402

METHODS = ("fork", "forkserver", "spawn")
STRATEGIES = ("file_descriptor", "file_system")


@pytest.fixture(params=STRATEGIES)
def strategy(request):
    mp.set_sharing_strategy(request.param)
    yield request.param
    mp.set_sharing_strategy("file_descriptor")


@pytest.fixture
def answers_of():
    """A process that answers with a function; it ends with the test."""
    started = []

    def start(function, method="fork"):
        context = mp.get_context(method)
        tasks, answers = context.Queue(), context.Queue()
        process = context.Process(target=work.answer, args=(function, tasks, answers))
        process.start()
        started.append((process, tasks))

        def ask(value):
            tasks.put(value)
            return answers.get(timeout=60)

        return ask

    yield start
    for process, tasks in started:
        tasks.put(None)
        process.join(60)


def _stats():
    gc.collect()
    return facula._C._shared_memory_stats()


def _names():
    return [name for name in os.listdir("/dev/shm") if name.startswith(f"facula_{os.getpid()}_")]


def _eventually(condition, seconds=20):
    limit = time.monotonic() + seconds
    while not condition() and time.monotonic() < limit:
        time.sleep(0.02)
    return condition()


# --- the two examples of PyTorch's first README


@pytest.mark.parametrize("method", METHODS)
def test_ten_processes_fill_tensors_of_a_queue(method):
    context = mp.get_context(method)
    queue = context.Queue()
    buffers = [facula.Tensor(2, 2) for _ in range(4)]
    for buffer in buffers:
        buffer.fill_(0)
        queue.put(buffer)
    processes = [context.Process(target=work.fill, args=(queue,)) for _ in range(10)]
    for process in processes:
        process.start()
    assert _eventually(lambda: all(bool((b == 10).all()) for b in buffers), 60)
    for _ in processes:
        queue.put(None)
    taken = 0
    while any(p.is_alive() for p in processes):
        if not queue.empty():
            tensor = queue.get()
            taken += tensor is not None
            if tensor is None or taken > 4:
                queue.put(None)
        time.sleep(0.001)


@pytest.mark.parametrize("method", METHODS)
def test_a_pool_fills_a_hundred_tensors(method):
    tensors = [facula.Tensor(2, 2).fill_(0) for _ in range(100)]
    with mp.get_context(method).Pool(3) as pool:
        pool.map(work.fill_pool, tensors)
    assert all(t.tolist() == [[10, 10], [10, 10]] for t in tensors)


def test_the_pool_of_the_submodule_shares_too():
    from facula.multiprocessing.pool import Pool

    tensor = facula.zeros(3)
    with Pool(1, context=mp.get_context("fork")) as pool:
        pool.map(work.fill_pool, [tensor])
    assert tensor.tolist() == [10, 10, 10]


# --- what travels, and how


SENT = {
    "tensor": lambda: facula.arange(6.0).view(2, 3),
    "view": lambda: facula.arange(12).view(3, 4).t()[1:, ::2],
    "empty": lambda: facula.empty(0, 3),
    "scalar": lambda: facula.tensor(3, dtype=facula.int16),
    "complex": lambda: facula.tensor([1 + 2j]).conj(),
    "large": lambda: facula.ones(300_000, dtype=facula.uint8)[::30_000],
    "leaf": lambda: facula.ones(2, requires_grad=True),
    "parameter": lambda: nn.Parameter(facula.ones(2), requires_grad=False),
    "module": lambda: nn.Linear(2, 1),
    "untyped": lambda: facula.tensor([1, 2]).untyped_storage(),
    "typed": lambda: facula.FloatStorage([1, 2]),
}


@pytest.mark.parametrize("method", METHODS)
def test_values_and_geometry_arrive(method, answers_of, strategy):
    ask = answers_of(work.described, method)
    for make in SENT.values():
        value = make()
        assert ask(value) == work.described(value)


def test_meta_tensors_arrive():
    from multiprocessing.reduction import ForkingPickler

    meta = facula.empty(2, 3, device="meta")
    back = ForkingPickler.loads(bytes(ForkingPickler.dumps(meta)))
    assert back.is_meta and back.shape == meta.shape


def test_views_of_one_storage_stay_over_one(strategy):
    context = mp.get_context("fork")
    base, done = facula.zeros(4), context.Queue()
    process = context.Process(target=work.add_one, args=([base, base.view(2, 2)], done))
    tasks = context.SimpleQueue()
    tasks.put(base)
    tasks.put(base[1:])
    first, second = tasks.get(), tasks.get()
    assert first.untyped_storage()._cdata == second.untyped_storage()._cdata
    assert first.data_ptr() == base.data_ptr()
    process.start()
    assert done.get(timeout=60) == [True, True]
    process.join()
    assert base.tolist() == [2, 2, 2, 2]


def test_a_tensor_that_is_no_leaf_is_refused():
    from facula.multiprocessing.reductions import reduce_tensor

    with pytest.raises(RuntimeError, match="refusing to serialize non-leaf tensor"):
        reduce_tensor(facula.ones(2, requires_grad=True) * 2)


def test_sharing_moves_tensors_in_place(strategy):
    for size in (0, 3, 1000, 500_000):
        x = facula.arange(size, dtype=facula.float32)
        view, seen = x[1:], memoryview(x.untyped_storage())
        assert not x.is_shared()
        assert x.share_memory_() is x and x.is_shared() and view.is_shared()
        assert x.tolist() == list(range(size)) and view.tolist() == list(range(1, size))
        assert len(seen) == 4 * size  # the old memory lives as long as somebody looks at it
        assert not x.untyped_storage().resizable()
    array = pytest.importorskip("numpy").arange(5.0)
    x = facula.from_numpy(array).share_memory_()
    array[0] = 9
    assert x.tolist() == [0, 1, 2, 3, 4]
    del x, view, seen


def test_new_shared_storages():
    storage = facula.UntypedStorage._new_shared(10)
    assert storage.is_shared() and storage.tolist() == [0] * 10
    assert facula.FloatStorage._new_shared(3).is_shared()
    with pytest.raises(RuntimeError, match="not negative"):
        facula.UntypedStorage._new_shared(-1)
    with pytest.raises(RuntimeError, match="processes share memory of the CPU"):
        facula.empty(2, device="meta").share_memory_()


def test_modules_share_parameters_and_their_gradients():
    model = nn.Linear(2, 2)
    model(facula.ones(2)).sum().backward()
    model.share_memory()
    assert model.weight.is_shared() and model.weight.grad.is_shared()


@pytest.mark.parametrize("method", METHODS)
def test_hogwild_training_learns(method):
    facula.manual_seed(0)
    model = nn.Linear(4, 1)
    model.share_memory()
    context = mp.get_context(method)
    processes = [context.Process(target=work.train, args=(model, 150)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [p.exitcode for p in processes] == [0, 0]
    assert facula.allclose(model.weight, facula.ones(1, 4), atol=0.1)


# --- limits, and what is left


@pytest.mark.parametrize("size", (10, 20_000))
def test_ten_thousand_shared_tensors_need_few_descriptors(size, strategy):
    before = _stats()
    tensors = [facula.empty(size, dtype=facula.uint8).share_memory_() for _ in range(10_000)]
    stats = _stats()
    assert stats["descriptors"] - before["descriptors"] < 200
    assert all(t.is_shared() for t in tensors)
    del tensors
    assert _stats() == before
    assert not _names()


def test_ten_thousand_tensors_wait_in_a_queue(answers_of, strategy):
    ask = answers_of(len)
    before = _stats()
    assert ask([facula.full((3,), i) for i in range(10_000)]) == 10_000
    assert _eventually(lambda: _stats() == before)


@pytest.mark.parametrize("method", METHODS)
def test_memory_of_a_killed_process_is_given_back(method, strategy):
    context = mp.get_context(method)
    ready = context.Queue()
    before = _stats()
    process = context.Process(target=work.hold, args=(strategy, ready))
    process.start()
    first, second = ready.get(timeout=60)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert first.sum().item() == 1000
    assert second.add_(1).sum().item() == 2000  # goes on without the one that made it
    del first, second
    assert _stats() == before


@pytest.fixture
def keeping():
    """Large segments are kept for another use, as workers of a DataLoader do."""
    facula._C._keep_shared_segments(True)
    yield
    facula._C._keep_shared_segments(False)


def _large(value):
    return facula.full((500_000,), float(value)).share_memory_()


def _segment(tensor):
    return facula._C._shared_block(tensor.untyped_storage())[0]


def test_kept_memory_serves_again(keeping):
    before = _stats()["segments"]
    first = _large(1)
    number = _segment(first)
    second = _large(2)
    assert _segment(second) != number
    del first
    third = _large(3)
    assert _segment(third) == number
    assert second.unique().tolist() == [2] and third.unique().tolist() == [3]
    assert facula.UntypedStorage._new_shared(2_000_000).tolist()[::100_000] == [0] * 20
    del second, third
    facula._C._keep_shared_segments(False)
    assert _stats()["segments"] == before


def test_kept_memory_waits_for_a_child_that_sees_it(keeping):
    kept = _large(1)
    number = _segment(kept)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(reading, 1)
        os._exit(0 if kept.unique().tolist() == [1] else 1)
    del kept
    other = _large(2)
    assert _segment(other) != number
    os.write(writing, b"x")
    assert os.waitpid(child, 0)[1] == 0
    os.close(reading)
    os.close(writing)


def test_kept_memory_waits_for_its_message(keeping):
    from multiprocessing.reduction import ForkingPickler

    kept = _large(1)
    number = _segment(kept)
    message = bytes(ForkingPickler.dumps(kept))
    del kept
    other = _large(2)
    assert _segment(other) != number
    back = ForkingPickler.loads(message)
    assert back.unique().tolist() == [1] and _segment(back) == number
    del back
    assert _segment(_large(3)) == number


_KILLED = """
import os, sys, signal
import facula, facula.multiprocessing as mp
mp.set_sharing_strategy(sys.argv[1])
kept = [facula.ones(1000 * i + 1).share_memory_() for i in range(100)]
if os.fork() == 0:
    kept.append(facula.ones(10).share_memory_())
    os.kill(os.getpid(), signal.SIGKILL)
os.wait()
print(len([n for n in os.listdir("/dev/shm") if n.startswith(f"facula_{os.getpid()}_")]))
print(os.getpid(), flush=True)
if sys.argv[2] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("end", ("kill", "leave"))
def test_no_name_is_left_when_a_program_ends(end, strategy):
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, strategy, end], capture_output=True, text=True, timeout=60
    )
    count, pid = done.stdout.split()
    assert done.returncode == (-signal.SIGKILL if end == "kill" else 0), done.stderr
    assert (int(count) > 0) == (strategy == "file_system")
    begin = f"facula_{pid}_"
    assert _eventually(lambda: not [n for n in os.listdir("/dev/shm") if n.startswith(begin)])


def test_a_message_of_an_ended_process_names_the_problem():
    place = (1, "", "/proc/2147483000/fd/3", None, 4096, 0, 8)
    from facula.multiprocessing.reductions import rebuild_storage

    with pytest.raises(RuntimeError, match="process that sent the tensor must live"):
        rebuild_storage(*place)


def test_bad_places_are_refused():
    mapped = facula._C._map_shared_storage
    x = facula.ones(3).share_memory_().untyped_storage()
    segment, name, descriptor, size, offset = facula._C._shared_block(x)
    for bad in ((size, offset, size), (size * 2, offset, 4), (size, offset + 1, 4), (size, -64, 4)):
        with pytest.raises(RuntimeError):
            mapped(segment, name, "", descriptor, *bad, False)
        with pytest.raises(RuntimeError):
            mapped(segment + 1, name, "", descriptor, *bad, False)
    with pytest.raises(RuntimeError, match="is not shared"):
        facula._C._shared_block(facula.ones(3).untyped_storage())


def test_descriptors_go_without_proc(monkeypatch):
    from facula.multiprocessing import reductions

    monkeypatch.setattr(reductions, "_opened_by_path", lambda pid: False)
    context = mp.get_context("spawn")
    x, done = facula.zeros(3), context.Queue()
    process = context.Process(target=work.add_one, args=([x], done))
    process.start()
    assert done.get(timeout=60) == [True]
    process.join()
    assert x.tolist() == [1, 1, 1]


def test_sharing_strategies_have_names():
    assert mp.get_all_sharing_strategies() == {"file_descriptor", "file_system"}
    assert mp.get_sharing_strategy() == "file_descriptor"
    with pytest.raises(AssertionError, match="invalid sharing strategy"):
        mp.set_sharing_strategy("x")


# --- spawn()


@pytest.mark.parametrize("method", METHODS)
def test_processes_get_their_number_and_shared_tensors(method):
    tensor = facula.zeros(3).share_memory_()  # a forked child gets no message
    mp.start_processes(work.write_index, (tensor,), nprocs=3, start_method=method)
    assert tensor.tolist() == [1, 2, 3]


ENDS = {
    "raise": (mp.ProcessRaisedException, "Process 1 terminated(.|\n)*ValueError: what is wrong"),
    "kill": (mp.ProcessExitedException, "process 1 terminated with signal SIGKILL"),
    "leave": (mp.ProcessExitedException, "process 1 terminated with exit code 5"),
}


@pytest.mark.parametrize("how", ENDS)
def test_the_first_failure_ends_the_others(how):
    kind, text = ENDS[how]
    context = mp.start_processes(work.end, (how,), nprocs=3, join=False, start_method="fork")
    with pytest.raises(kind, match=text) as caught:
        while not context.join():
            pass
    assert caught.value.error_index == 1 and caught.value.pid == context.pids()[1]
    assert not any(p.is_alive() for p in context.processes)


def test_spawn_runs_in_new_processes():
    mp.spawn(work.end, (None,), nprocs=2)
    with pytest.warns(FutureWarning, match="start_processes"):
        assert mp.spawn(work.end, (None,), nprocs=1, join=False, start_method="fork").join(60)
