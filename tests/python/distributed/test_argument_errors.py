"""Arguments that collectives refuse, before anything is sent."""

import facula
import facula.distributed as dist
import pytest
from facula.distributed import checkpoint, pipelining, threads
from facula.distributed.optim import ZeroRedundancyOptimizer
from facula.distributed.tensor import DTensor, Shard, distribute_tensor

ones, zeros = facula.ones, facula.zeros


def mesh():
    return dist.init_device_mesh("cpu", (2,))


CASES = [
    (lambda: dist.all_reduce([ones(2)]), TypeError, "Tensor"),
    (lambda: dist.all_reduce(ones(2), dist.ReduceOp.BAND), RuntimeError, "integers"),
    (lambda: dist.all_reduce(ones(2).to(facula.complex64), dist.ReduceOp.MAX), ValueError, "compl"),
    (lambda: dist.all_reduce(ones(2), "sum"), TypeError, "ReduceOp"),
    (lambda: dist.all_gather([zeros(2)] * 3, ones(2)), RuntimeError, "got 3"),
    (lambda: dist.all_gather([zeros(3)] * 2, ones(2)), RuntimeError, "index 0"),
    (lambda: dist.all_gather_into_tensor(zeros(5), ones(2)), RuntimeError, "2 x 2"),
    (lambda: dist.all_gather_into_tensor(zeros(4).long(), ones(2)), RuntimeError, "dtype"),
    (
        lambda: dist.gather(ones(2), None if dist.get_rank() == 0 else [zeros(2)] * 2),
        ValueError,
        None,
    ),
    (lambda: dist.reduce_scatter(zeros(2), [ones(2)]), RuntimeError, "got 1"),
    (lambda: dist.reduce_scatter_tensor(zeros(2), ones(5)), RuntimeError, "2 x 2"),
    (lambda: dist.all_to_all_single(zeros(4), ones(4), [1, 1], [2, 2]), RuntimeError, "add up to"),
    (lambda: dist.all_to_all_single(zeros(5), ones(5)), RuntimeError, "divide"),
    (lambda: dist.all_to_all([zeros(2)], [ones(2)] * 2), RuntimeError, "got 1"),
    (lambda: dist.reduce(ones(2), 5), RuntimeError, "root"),
    (lambda: dist.broadcast(ones(2), 5), RuntimeError, "root"),
    (lambda: dist.broadcast(ones(2)), ValueError, "src"),
    (lambda: dist.send(ones(2), dist.get_rank()), ValueError, "destination"),
    (lambda: dist.batch_isend_irecv([]), IndexError, None),
    (lambda: dist.P2POp(dist.send, ones(1), 0), ValueError, "isend"),
    (lambda: dist.new_group([0, 7]), ValueError, "below 2"),
    (lambda: dist.new_group([0, 0]), ValueError, "distinct"),
    (lambda: dist.init_process_group("gloo"), ValueError, "twice"),
    (lambda: dist.new_group(backend="nccl"), RuntimeError, "nccl"),
    (lambda: dist.split_group(), ValueError, "split_ranks cannot be None or empty"),
    (lambda: dist.split_group(split_ranks=[[0, 9]]), ValueError, "distinct ranks below"),
    (lambda: dist.split_group(split_ranks=[[0]], backend="mpi"), ValueError, "expected backends"),
    (lambda: distribute_tensor("x", mesh(), [Shard(0)]), TypeError, "got str"),
    (lambda: distribute_tensor(ones(2), mesh(), ["S"]), TypeError, "got 'S'"),
    (lambda: DTensor.from_local(3, mesh(), [Shard(0)]), TypeError, "got int"),
    (lambda: distribute_tensor(ones(2), mesh()).redistribute(placements=[0]), TypeError, "got 0"),
    (lambda: distribute_tensor(ones(2), mesh()).numpy(), RuntimeError, "got a DTensor"),
    (lambda: checkpoint.save("x", checkpoint_id="nowhere"), TypeError, "got str"),
    (lambda: pipelining.ScheduleGPipe(3, 2), TypeError, "got int"),
    (lambda: ZeroRedundancyOptimizer([ones(2)], "SGD"), TypeError, "got str"),
    (lambda: threads.run(3, 2), TypeError, "got int"),
]


def test_wrong_arguments_raise_and_the_group_stays_usable():
    def work(rank):
        for call, error, text in CASES:
            with pytest.raises(error, match=text):
                call()
        x = ones(1)
        dist.all_reduce(x)
        return x.item()

    assert threads.run(work, 2) == [2, 2]


def test_groups_of_the_core_check_what_memory_safety_needs():
    from facula._C import _distributed

    def group(rank, size):
        return _distributed.Group(rank, size, "g", "local", 1000, 1000, 1000)

    def run(g, call, inputs, outputs, root=-1, sent=None, received=None, op=0):
        g.run(call, inputs, outputs, op, 1.0, root, False, sent, received, None)

    alone, connected = group(0, 1), group(0, 1)
    assert connected.connect([connected.address()])
    cases = [
        lambda: run(alone, 3, [ones(1)], [ones(1)]),
        lambda: alone.message(True, ones(1), 0, 0, False),
        lambda: alone.table(),
        lambda: alone.start(),
        lambda: alone.abort("for no reason"),
        lambda: alone.connect([]),
        lambda: connected.connect([connected.address()]),
        lambda: group(5, 2),
        lambda: group(0, 5000),
        lambda: _distributed.Group(0, 1, "g", "../nothing", 1, 1, 1),
        lambda: _distributed.Work(),
        lambda: run(connected, 99, [], []),
        lambda: run(connected, 3, [ones(2)], [ones(3)]),
        lambda: run(connected, 3, [ones(2)], [ones(2).int()]),
        lambda: run(connected, 3, [ones(2)], [facula.empty(2, device="meta")]),
        lambda: run(connected, 3, [ones(2, 3).t()], [ones(3, 2)]),
        lambda: run(connected, 9, [ones(2)], [ones(3)], sent=[100], received=[100]),
        lambda: run(connected, 9, [ones(2)], [ones(2)]),
        lambda: run(connected, 2, [], [ones(3)], root=-5),
        lambda: run(connected, 4, [ones(3)], [ones(3)], root=0, op=200),
        lambda: run(connected, 5, [ones(3)], []),
    ]
    for case in cases:
        with pytest.raises((RuntimeError, TypeError, ValueError)):
            case()


def test_options_of_the_environment_are_checked(monkeypatch):
    monkeypatch.setenv("FACULA_DISTRIBUTED_HEARTBEAT", "soon")
    with pytest.raises(ValueError, match="HEARTBEAT"):
        threads.run(lambda rank: None, 1)


def test_meta_tensors_need_no_communication():
    def work(rank):
        x = facula.ones(3, device="meta")
        dist.all_reduce(x)
        return x.device.type

    assert threads.run(work, 2) == ["meta", "meta"]
