"""Messages between two ranks, and objects."""

import pickle

import facula
import facula.distributed as dist
import pytest
from facula.distributed import threads

LARGE = 300_000  # more than a channel holds


def test_messages_of_any_size_arrive():
    def work(rank):
        results = []
        for n in (0, 1, 1000, LARGE):
            x = facula.arange(n).float()
            if rank == 0:
                dist.send(x, 1)
            else:
                out = facula.zeros(n)
                results.append(dist.recv(out) == 0 and facula.equal(out, x))
        return all(results)

    assert all(threads.run(work, 2))


def test_tags_choose_the_message():
    def work(rank):
        if rank == 0:
            for tag in (5, 6, 7):
                dist.send(facula.full((LARGE,), float(tag)), 1, tag=tag)
            return None
        got = []
        for tag in (7, 5, 6):
            out = facula.zeros(LARGE)
            dist.recv(out, 0, tag=tag)
            got.append(out[-1].item())
        return got

    assert threads.run(work, 2)[1] == [7, 5, 6]


def test_messages_go_on_while_nobody_waits_for_them():
    def work(rank):
        x, total = facula.full((LARGE,), 3.0), facula.ones(1)
        if rank == 0:
            sent = dist.isend(x, 1)
            dist.all_reduce(total)
            sent.wait()
        else:
            out = facula.zeros(LARGE)
            dist.recv(out, 0)
            dist.all_reduce(total)
            assert facula.equal(out, x)
        return total.item()

    assert threads.run(work, 2) == [2, 2]


def test_both_may_send_before_they_receive():
    def work(rank):
        x, out = facula.full((LARGE,), float(rank)), facula.zeros(LARGE).t()
        works = dist.batch_isend_irecv(
            [dist.P2POp(dist.isend, x, 1 - rank), dist.P2POp(dist.irecv, out, 1 - rank)]
        )
        for w in works:
            w.wait()
        assert all(w.is_completed() for w in works)
        return out[7].item()

    assert threads.run(work, 2) == [1, 0]


def test_receives_from_any_rank_say_from_which():
    def work(rank):
        if rank:
            dist.send(facula.tensor([rank]), 0)
            return None
        got = set()
        for _ in range(2):
            out = facula.zeros(1, dtype=facula.int64)
            got.add((dist.recv(out), out.item()))
        return got

    assert threads.run(work, 3)[0] == {(1, 1), (2, 2)}


def test_a_message_of_another_size_is_an_error_at_both_ranks():
    def work(rank):
        with pytest.raises(dist.DistBackendError, match=r"int64 \[3\][\s\S]*float32 \[2\]"):
            if rank == 0:
                dist.send(facula.arange(3), 1)
                dist.barrier()
            else:
                dist.recv(facula.zeros(2), 0)
        return True

    with pytest.raises(dist.DistBackendError):
        threads.run(lambda rank: (work(rank), dist.barrier()), 2)


@pytest.mark.parametrize("only", [False, True])
def test_objects(only):
    def work(rank):
        only_weights = {"weights_only": only}
        mine = {"rank": rank, "text": "x" * (rank * 100)}
        every, collected = [None] * 3, [None] * 3 if rank == 1 else None
        dist.all_gather_object(every, mine, **only_weights)
        dist.gather_object(mine, collected, dst=1, **only_weights)
        copied = [1, "two", None] if rank == 2 else [None] * 3
        dist.broadcast_object_list(copied, 2, **only_weights)
        given = [None]
        dist.scatter_object_list(given, ["a", ["b"], 3.0] if rank == 0 else None, 0, **only_weights)
        if rank == 0:
            dist.send_object_list([mine, 5], 1, **only_weights)
        if rank == 1:
            received = [None, None]
            assert dist.recv_object_list(received, **only_weights) == 0
            assert received == [{"rank": 0, "text": ""}, 5]
        return every, collected, copied, given[0]

    expected = [{"rank": r, "text": "x" * (r * 100)} for r in range(3)]
    for rank, (every, collected, copied, given) in enumerate(threads.run(work, 3)):
        assert every == expected and copied == [1, "two", None]
        assert collected == (expected if rank == 1 else None)
        assert given == ["a", ["b"], 3.0][rank]


class Stranger:
    """What a checkpoint may not name."""


def test_objects_of_weights_only_are_tensors_and_containers():
    def work(rank):
        found = [None]
        mine = {"t": facula.full((2,), 3.0), "p": facula.nn.Parameter(facula.ones(1))}
        dist.all_gather_object(found, mine, weights_only=True)
        assert found[0]["t"].equal(mine["t"]) and found[0]["p"].requires_grad
        for bad in (Stranger(), print):
            with pytest.raises(pickle.UnpicklingError):
                dist.all_gather_object(found, bad, weights_only=True)
        return True

    assert threads.run(work, 1) == [True]
