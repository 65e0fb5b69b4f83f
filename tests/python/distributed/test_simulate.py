"""Simulated steps of large programs, and what collectives are said to cost."""

import facula
import facula.distributed as dist
import pytest
from facula.distributed.simulate import (
    MACHINES,
    Machine,
    Network,
    SharedMemory,
    __main__,
    check,
    plans,
    simulate,
)
from facula.distributed.simulate.models import SIZES, Decoder, Size
from facula.testing import assert_close

NETWORK = Network(8, 1e-6, 100e9, 10e-6, 10e9)
SMALL = Size(4, 64, 4, 128, 1000)
TASK = plans.Task(SMALL, batch=2, length=32)


@pytest.mark.parametrize(
    "call, nbytes, ranks, seconds",
    [
        ("all_reduce", 8e9, 1, 0.0),
        ("all_reduce", 8e9, 8, 2 * (3e-6 + 7e9 / 100e9)),  # each rank sends and gets 7/8 twice
        ("all_gather", 8e9, 8, 3e-6 + 7e9 / 100e9),
        ("all_gather", 8e9, 16, 13e-6 + 7.5e9 / 100e9),  # half comes over eight connections: faster
        ("all_gather", 8e9, 1024, 73e-6 + 8e9 * 127 / 128 / 8 / 10e9),
        ("all_reduce", 0, 4096, 2 * (3e-6 + 9 * 10e-6)),
        ("send", 1e9, 8, 1e-6 + 1e-2),
        ("send", 1e9, 9, 1e-5 + 1e-1),
        ("all_to_all", 8e9, 8, 3e-6 + 7e9 / 100e9),
        ("barrier", 0, 2, 2e-6),
    ],
)
def test_costs_of_collectives(call, nbytes, ranks, seconds):
    assert NETWORK.seconds(call, nbytes, ranks) == pytest.approx(max(seconds, 0.0), rel=0.08)


def test_ranks_that_share_processors_take_turns():
    memory = SharedMemory(2, 1e-6, 1e9)
    assert memory.seconds("broadcast", 1e6, 4) == pytest.approx(2e-6 + 2e-3)
    assert memory.seconds("all_reduce", 1e6, 1) == 0


def test_the_clock_waits_for_collectives_that_have_not_ended():
    machine = Machine(1e12, 1e9, 0.0, 1e9, Network(8, 0.0, 1e9, 0.0, 1e9))
    with simulate(machine, 2) as watch:
        x = facula.ones(1000, device="meta")
        watch.clock.reset()
        work = dist.all_reduce(x, async_op=True)
        x + 1  # 8,000 bytes at 1 GB/s, beside the 4,000 that move
        assert watch.clock.now == pytest.approx(8e-6)
        work.wait()
        assert watch.clock.now == pytest.approx(8e-6) and watch.clock.waited == 0
        dist.all_gather_into_tensor(facula.ones(2000, device="meta"), x)
        assert watch.clock.waited == pytest.approx(4e-6)
    assert not dist.is_initialized()
    with pytest.raises(RuntimeError, match="for simulate"):
        dist.init_process_group("simulated", store=dist.HashStore(), rank=0, world_size=2)


def test_memory_is_what_the_real_program_keeps():
    parameters = SMALL.parameters()
    with facula.device("meta"):
        assert sum(p.numel() for p in Decoder(SMALL).parameters()) == parameters
    task = TASK._replace(dtype=facula.float32)
    whole = plans.ddp(MACHINES["cpu"], 4, task)
    shards = plans.fully_shard(MACHINES["cpu"], 4, task)
    checkpointed = plans.ddp(MACHINES["cpu"], 4, task._replace(is_checkpointed=True))
    assert whole.peak > 4 * 4 * parameters  # parameters, gradients, two states of Adam
    assert shards.peak < whole.peak - 2 * 4 * parameters
    assert checkpointed.peak < whole.peak and checkpointed.seconds > whole.seconds
    assert 4 * parameters <= whole.sent < 4.5 * parameters
    assert shards.sent > 2.5 * 4 * parameters  # gathered twice, reduced once


def test_fewer_operators_than_ranks_for_large_worlds():
    few, many = (plans.fully_shard(MACHINES["a100"], ranks, TASK).seconds for ranks in (64, 4096))
    assert many < 2 * few


def test_pipelines_have_the_bubbles_of_their_plans():
    free = Machine(1e15, 1e15, 1e-3, 1e9, Network(8, 0.0, 1e18, 0.0, 1e18))
    times = {name: plans.pipeline(free, 4, TASK, 2, name) for name in plans.ORDERS}
    for name in ("gpipe", "1f1b"):
        # A fifth for 4 microbatches and 2 equal stages; these have an embedding and a map besides.
        assert 0.15 < times[name].waited / times[name].seconds < 0.35
    assert times["interleaved"].waited < times["1f1b"].waited
    assert times["1f1b"].peak < times["gpipe"].peak
    with pytest.raises(ValueError, match="divides"):
        plans.pipeline(free, 3, TASK, 2)
    with pytest.raises(ValueError, match="expected one of"):
        plans.pipeline(free, 4, TASK, 2, "2f2b")


def test_a_simulated_program_computes_nothing_but_is_the_real_one():
    with simulate(MACHINES["cpu"], 8) as watch:
        model = facula.nn.Linear(3, 3)  # on the CPU: values are computed, and cost no time
        assert_close(model(facula.zeros(1, 3))[0], model.bias)
        assert watch.clock.now == 0
        with pytest.raises(RuntimeError, match="no process group"), simulate(MACHINES["cpu"], 2):
            pass


def test_the_command(capsys, tmp_path):
    words = ["--model", "125m", "--ranks", "2,6", "--plans", "ddp,1f1b", "--stages", "2"]
    assert __main__.main([*words, "--batch", "1", "--length", "64"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6 and lines[2].startswith("| ddp | 2 | ")
    assert __main__.main(["--model", "125m", "--ranks", "3", "--plans", "1f1b"]) == 0
    assert "expected ranks that 8" in capsys.readouterr().out
    for wrong in (["--ranks", "0"], ["--ranks", "x"], ["--plans", "x"], ["--model", "9b"]):
        with pytest.raises(SystemExit):
            __main__.main(wrong)


def test_the_check_measures_what_it_says():
    assert {size.parameters() > 1e8 for size in SIZES.values()} == {True}
    measured = check.measure_collectives([2], [4096], rounds=2)
    assert set(measured) == {(name, 2, 4096) for name in check._CALLS}
    network = check.fit({("all_reduce", 2, 1 << 20): 1e-3, ("all_reduce", 2, 4): 1e-5})
    assert network.seconds("all_reduce", 1 << 20, 2) == pytest.approx(1e-3, rel=0.3)
