"""Ranks that die, stop, fail or call something else: every rank is told soon, and by whom."""

import os
import signal
import time

import facula
import facula.distributed as dist
import pytest
from facula._C import _distributed
from facula.distributed import threads
from ranks import Ranks, outputs

# Loops until an error comes, and says when and what.
LOOP = """
x = facula.ones(4)
try:
    while True:
        dist.all_reduce(x)
except dist.DistBackendError as error:
    print(time.time(), error)
"""


ENGINES = ["local"] + ([] if _distributed.why_not("gloo") else ["gloo"])


def memory_files():
    return {n for n in os.listdir("/dev/shm") if "facula" in n}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "how, within, text",
    [
        (signal.SIGKILL, 2, "rank 1 is lost: its"),
        (signal.SIGTERM, 2, "rank 1 is lost: its"),
        (signal.SIGSTOP, 3.5, "no sign of life for 1."),
    ],
)
def test_a_lost_process_is_named(tmp_path, how, within, text, engine):
    before = memory_files()
    ranks = Ranks(LOOP, 3, tmp_path, FACULA_DISTRIBUTED_ENGINE=engine)
    ranks.wait_ready()
    time.sleep(0.1)
    lost = ranks.processes[1]
    lost.send_signal(how)
    sent = time.time()
    try:
        for rank in (0, 2):
            out, err = ranks.processes[rank].communicate(timeout=20)
            when, _, message = out.partition(" ")
            assert text in message, (out, err)
            assert engine == "gloo" or f"process {lost.pid}" in message
            assert float(when) - sent < within
            assert ranks.processes[rank].returncode == 0
    finally:
        lost.kill()
        lost.communicate()
    assert memory_files() == before


@pytest.mark.parametrize("engine", ENGINES)
def test_an_error_of_one_rank_ends_the_others_with_its_traceback(tmp_path, engine):
    program = "if rank == 1: raise KeyError('lost data')\n" + LOOP
    results = Ranks(program, 3, tmp_path, FACULA_DISTRIBUTED_ENGINE=engine).end()
    assert results[1][0] == 1 and "KeyError" in results[1][2]
    for rank in (0, 2):
        assert "rank 1 ended with an error" in results[rank][1]
        assert "KeyError: 'lost data'" in results[rank][1]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_rank_that_ends_before_the_others_is_named(tmp_path, engine):
    program = "if rank == 1: sys.exit()\n" + LOOP
    results = Ranks(program, 2, tmp_path, FACULA_DISTRIBUTED_ENGINE=engine).end()
    assert results[1][0] == 0
    assert "rank 1 has left the group" in results[0][1]


def test_ctrl_c_ends_all(tmp_path):
    ranks = Ranks(LOOP, 2, tmp_path)
    ranks.wait_ready()
    time.sleep(0.2)
    ranks.processes[0].send_signal(signal.SIGINT)
    (code, _, err), (_, out, _) = ranks.end()
    assert code != 0 and "KeyboardInterrupt" in err
    assert "rank 0" in out


def test_processes_compute_what_threads_do(tmp_path):
    program = """
    x = facula.full((100_000,), rank + 1.0)
    dist.all_reduce(x)
    objects = [None] * size
    dist.all_gather_object(objects, rank)
    dist.monitored_barrier()
    dist.destroy_process_group()
    print(x[0].item(), objects)
    """
    assert outputs(program, 4, tmp_path) == ["10.0 [0, 1, 2, 3]\n"] * 4


def test_a_rank_that_does_not_come_is_named_at_the_start(tmp_path):
    program = """
    try:
        dist.init_process_group(store=store, rank=0, world_size=3, timeout=timedelta(seconds=0.3))
    except dist.DistBackendError as error:
        print(error)
    """
    ((_, out, _),) = Ranks(program, 1, tmp_path, init=False).end()
    assert "missing are 1, 2" in out


def test_a_rank_that_gets_no_memory_for_the_group_tells_the_others(tmp_path):
    program = """
    import resource
    if rank == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, resource.RLIM_INFINITY))
    began = time.monotonic()
    try:
        dist.init_process_group("gloo", store=store, rank=rank, world_size=2,
                                timeout=timedelta(seconds=60))
    except RuntimeError as error:
        print(time.monotonic() - began < 10, "File too large" in str(error),
              "rank 0: RuntimeError" in str(error))
    """
    ended = Ranks(program, 2, tmp_path, init=False).end()
    assert [out for _, out, _ in ended] == ["True True False\n", "True True True\n"]


def test_a_group_may_be_made_again(tmp_path):
    program = """
    for i in range(3):
        x = facula.ones(1)
        dist.all_reduce(x)
        dist.destroy_process_group()
        dist.init_process_group(store=store, rank=rank, world_size=size)
    print(x.item())
    """
    assert outputs(program, 2, tmp_path) == ["2.0\n"] * 2


def test_a_forked_child_cannot_use_the_group(tmp_path):
    program = """
    dist.barrier()
    if os.fork() == 0:
        try:
            dist.barrier()
        except RuntimeError as error:
            print(error, flush=True)
        os._exit(0)
    os.wait()
    dist.barrier()
    """
    assert all("forked child" in out for out in outputs(program, 2, tmp_path))


# --- calls that differ, by threads

DIFFERENT = {
    "shape": (lambda: dist.all_reduce(facula.ones(3)), lambda: dist.all_reduce(facula.ones(4))),
    "dtype": (
        lambda: dist.all_reduce(facula.ones(3)),
        lambda: dist.all_reduce(facula.ones(3, dtype=facula.int32)),
    ),
    "order": (lambda: dist.barrier(), lambda: dist.broadcast(facula.ones(3), 0)),
    "reduction": (
        lambda: dist.all_reduce(facula.ones(3)),
        lambda: dist.all_reduce(facula.ones(3), dist.ReduceOp.MAX),
    ),
    "root": (lambda: dist.broadcast(facula.ones(3), 0), lambda: dist.broadcast(facula.ones(3), 1)),
    # One side's data goes with its packet, the other's is too large for that.
    "size": (
        lambda: dist.broadcast(facula.ones(16_384), 0),
        lambda: dist.broadcast(facula.ones(16_385), 0),
    ),
    "call": (
        lambda: dist.all_reduce(facula.ones(16_000)),
        lambda: dist.broadcast(facula.ones(60_000), 2),
    ),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("what", DIFFERENT)
def test_calls_that_differ_raise_at_all_ranks_with_a_table(what, engine, monkeypatch):
    monkeypatch.setenv("FACULA_DISTRIBUTED_ENGINE", engine)
    texts = []

    def work(rank):
        dist.all_reduce(facula.ones(2))
        begin = time.monotonic()
        try:
            DIFFERENT[what][rank == 2]()
        except dist.DistBackendError as error:
            texts.append(str(error))
            assert time.monotonic() - begin < 2
            with pytest.raises(dist.DistBackendError, match="number 2"):
                dist.barrier()  # the group stays broken
            raise

    with pytest.raises(dist.DistBackendError):
        threads.run(work, 3)
    assert len(texts) == 3 and len(set(texts)) == 1
    for part in ("number 2", "rank 0: ", "rank 1: ", "rank 2: ", "test_faults.py:"):
        assert part in texts[0]


def test_parts_that_do_not_fit_raise_at_all_ranks():
    texts = []

    def noted(rank):
        try:
            dist.all_to_all_single(
                facula.zeros(4), facula.ones(4), [3, 1], [3, 1] if rank == 0 else [2, 2]
            )
        except dist.DistBackendError as error:
            texts.append(str(error))

    threads.run(noted, 2)
    assert len(texts) == 2 and "all_to_all(): group '0': rank" in texts[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_call_that_one_rank_misses_raises_when_it_leaves(engine, monkeypatch):
    monkeypatch.setenv("FACULA_DISTRIBUTED_ENGINE", engine)

    def work(rank):
        dist.barrier()
        if rank == 0:
            with pytest.raises(dist.DistBackendError, match="rank 1 has left the group"):
                dist.barrier()
        return True

    begin = time.monotonic()
    assert threads.run(work, 2) == [True, True]
    assert time.monotonic() - begin < 2


def test_an_error_of_a_thread_ends_the_others():
    errors = []

    def work(rank):
        if rank == 1:
            raise KeyError("of rank 1")
        try:
            dist.barrier()
        except dist.DistBackendError as error:
            errors.append(str(error))
            raise

    with pytest.raises(KeyError, match="of rank 1"):
        threads.run(work, 3)
    assert len(errors) == 2 and all("KeyError: 'of rank 1'" in e for e in errors)


def test_a_timeout_names_who_is_late(capfd):
    from datetime import timedelta

    def work(rank):
        if rank == 0:
            with pytest.raises(dist.DistBackendError, match="timed out after 0.3 s.*rank 1"):
                dist.barrier()
        else:
            time.sleep(1)
        return True

    assert threads.run(work, 2, timeout=timedelta(seconds=0.3)) == [True, True]


def test_ranks_that_lag_are_named(capfd, monkeypatch):
    monkeypatch.setenv("FACULA_DISTRIBUTED_LAG", "0.1")

    def work(rank):
        if rank == 1:
            time.sleep(0.4)
        dist.barrier()

    threads.run(work, 2)
    err = capfd.readouterr().err
    assert "rank 0 has waited" in err and "rank 1: has made no call" in err


def test_monitored_barrier_names_the_missing():
    from datetime import timedelta

    def work(rank):
        if rank == 2:
            return time.sleep(0.6)
        with pytest.raises(dist.DistBackendError, match="rank 2 did not come"):
            dist.monitored_barrier(timeout=timedelta(seconds=0.3))

    threads.run(work, 3)


def test_abort_ends_those_that_wait():
    def work(rank):
        if rank == 0:
            time.sleep(0.2)
            dist.distributed_c10d._abort_process_group()
        else:
            with pytest.raises(dist.DistBackendError, match="rank 0 aborted"):
                dist.barrier()

    threads.run(work, 2)


def test_timeouts_may_change_and_belong_to_a_call():
    from datetime import timedelta

    def work(rank):
        dist.distributed_c10d.set_timeout(timedelta(seconds=0.2))
        if rank == 0:
            with pytest.raises(dist.DistBackendError, match="timed out after 0.2 s"):
                dist.barrier()
        else:
            time.sleep(0.5)

    threads.run(work, 2)


def test_shapes_are_compared_on_demand():
    def work(rank):
        dist.all_reduce(facula.ones([(2, 3), (3, 2)][rank]))

    threads.run(work, 2)
    before = dist.get_debug_level()
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    try:
        with pytest.raises(dist.DistBackendError, match=r"\[2, 3\][\s\S]*\[3, 2\]"):
            threads.run(work, 2)
    finally:
        dist.set_debug_level(before)
