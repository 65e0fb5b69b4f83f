"""Ranks that wait for each other in a circle are told, and those that are only late are not."""

import threading
import time

import facula
import facula.distributed as dist
import pytest
from facula._C import _distributed
from facula.distributed import threads
from ranks import outputs
from test_faults import ENGINES


def receive_and_reduce(rank, groups):
    if rank == 0:
        dist.all_reduce(facula.ones(1))
    else:
        dist.recv(facula.ones(1), 0)


def receive_from_each_other(rank, groups):
    dist.recv(facula.ones(1), 1 - rank)


def groups_in_another_order(rank, groups):
    for group in groups if rank == 0 else reversed(groups):
        dist.barrier(group)


def send_more_than_fits(rank, groups):
    if rank == 0:
        dist.send(facula.ones(1 << 20), 1)
    else:
        dist.barrier()


def around_a_ring(rank, groups):
    dist.recv(facula.ones(1), (rank + 1) % dist.get_world_size())


CIRCLES = {
    receive_and_reduce: (2, ["rank 0 in group '0' waits in all_reduce", "waits in recv(rank 0)"]),
    receive_from_each_other: (2, ["waits in recv(rank 0)", "waits in recv(rank 1)"]),
    groups_in_another_order: (
        2,
        ["in group '1' waits in barrier", "in group '2' waits in barrier"],
    ),
    send_more_than_fits: (2, ["waits in send(rank 1)", "waits in barrier"]),
    around_a_ring: (3, [f"waits in recv(rank {r})" for r in range(3)]),
}


@pytest.mark.parametrize("program", CIRCLES)
def test_a_circle_raises_at_all_ranks_within_two_seconds(program):
    size, parts = CIRCLES[program]
    found = []

    def work(rank):
        groups = [dist.new_group(list(range(size))) for _ in range(2)]
        dist.barrier()
        began = time.monotonic()
        with pytest.raises(dist.DistBackendError, match="ranks wait for each other") as error:
            program(rank, groups)
        found.append((time.monotonic() - began, str(error.value)))

    threads.run(work, size)
    assert len(found) == size
    for seconds, text in found:
        assert seconds < 2.5 and all(part in text for part in parts), text


def test_circles_of_processes_are_seen(tmp_path):
    program = """
    groups = [dist.new_group() for _ in range(2)]
    dist.barrier()
    try:
        for group in groups if rank == 0 else reversed(groups):
            dist.all_reduce(facula.ones(2), group=group)
    except dist.DistBackendError as error:
        print(error)
    """
    for text in outputs(program, 2, tmp_path):
        assert "ranks wait for each other" in text and text.count(" waits in all_reduce") == 2


@pytest.mark.skipif(bool(_distributed.why_not("gloo")), reason="no engine over Gloo")
def test_circles_over_gloo_are_seen(monkeypatch):
    monkeypatch.setenv("FACULA_DISTRIBUTED_ENGINE", "gloo")
    found = []

    def work(rank):
        dist.barrier()
        began = time.monotonic()
        with pytest.raises(dist.DistBackendError, match="ranks wait for each other") as error:
            receive_and_reduce(rank, None)
        found.append((time.monotonic() - began, str(error.value)))

    threads.run(work, 2)
    assert len(found) == 2 and found[0][1] == found[1][1] and max(found)[0] < 3, found


@pytest.mark.parametrize("engine", ENGINES)
def test_late_ranks_are_no_circle(engine, monkeypatch):
    monkeypatch.setenv("FACULA_DISTRIBUTED_ENGINE", engine)

    def work(rank):
        x = facula.full((1,), float(rank))
        if rank == 0:
            time.sleep(1.6)
            dist.send(x, 1)
        else:
            dist.recv(x, 0)
        dist.barrier()
        return x.item()

    assert threads.run(work, 2) == [0, 0]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_rank_that_calls_from_several_threads_is_not_judged(engine, monkeypatch):
    monkeypatch.setenv("FACULA_DISTRIBUTED_ENGINE", engine)

    def work(rank):
        x = facula.full((1,), float(rank))
        if rank == 0:
            groups = threads.world._of_thread.groups

            def send(delay):
                threads.world._of_thread.groups = groups
                time.sleep(delay)
                dist.send(x, 1)

            first = threading.Thread(target=send, args=(0,))
            first.start()
            first.join()
            second = threading.Thread(target=send, args=(1.6,))
            second.start()
            dist.barrier()
            second.join()
        else:
            dist.recv(x, 0)
            dist.recv(x, 0)
            dist.barrier()
        return x.item()

    assert threads.run(work, 2) == [0, 0]
