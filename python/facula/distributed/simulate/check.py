"""The model beside what ranks of this machine take: threads that move data in shared memory."""

from __future__ import annotations

import os
import statistics
import time
from typing import NamedTuple

import facula
import facula.distributed as dist
from facula import nn
from facula.distributed import threads
from facula.distributed.simulate.clock import simulate
from facula.distributed.simulate.cost import Machine, SharedMemory

_CALLS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast")


class Pair(NamedTuple):
    """What was measured, and what the model says; seconds.

    Args:
        what (str): the call or the step.
        ranks (int): that took part.
        nbytes (int): of the whole; 0 for steps.
        measured, modelled (float): seconds.
    """

    what: str
    ranks: int
    nbytes: int
    measured: float
    modelled: float


def _call(name, nbytes, ranks):
    """A function that makes the call once."""
    whole = facula.ones(nbytes // 4 // ranks * ranks)
    part = facula.ones(whole.numel() // ranks)
    return {
        "all_reduce": lambda: dist.all_reduce(whole),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, whole),
        "all_gather": lambda: dist.all_gather_into_tensor(whole, part),
        "broadcast": lambda: dist.broadcast(whole, 0),
    }[name]


def _seconds_of_calls(rank, ranks, sizes, rounds):
    found = {}
    for name in _CALLS:
        for nbytes in sizes:
            call = _call(name, nbytes, ranks)
            call()
            times = []
            for _ in range(rounds):
                dist.barrier()
                start = time.perf_counter()
                call()
                times.append(time.perf_counter() - start)
            found[name, nbytes] = statistics.median(times)
    return found


def measure_collectives(ranks_list, sizes, rounds=9):
    """Seconds of each collective.

    Args:
        ranks_list (list of int): numbers of ranks.
        sizes (list of int): bytes of the whole.
        rounds (int): of which the median counts.

    Returns:
        dict: from (call, ranks, bytes) to seconds
    """
    found = {}
    for ranks in ranks_list:
        by_rank = threads.run(_seconds_of_calls, ranks, (ranks, sizes, rounds))
        for (name, nbytes), seconds in by_rank[0].items():
            found[name, ranks, nbytes] = seconds
    return found


def fit(measured):
    """The SharedMemory that is nearest to what was measured, by the squares of logarithms.

    Args:
        measured (dict): what `measure_collectives` gives.
    """
    import math

    processors = os.cpu_count() or 1

    def distance(network):
        return sum(
            math.log(network.seconds(name, nbytes, ranks) / seconds) ** 2
            for (name, ranks, nbytes), seconds in measured.items()
        )

    candidates = [
        SharedMemory(processors, 1e-6 * 1.25**i, 1e8 * 1.25**j)
        for i in range(25)
        for j in range(30)
    ]
    return min(candidates, key=distance)


def _mlp(width, layers):
    return nn.Sequential(
        *[part for _ in range(layers) for part in (nn.Linear(width, width), nn.ReLU())]
    )


def _measured_step(rank, width, layers, batch):
    facula.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(_mlp(width, layers))
    optimizer, x = facula.optim.AdamW(model.parameters()), facula.randn(batch, width)
    times = []
    for _ in range(7):
        dist.barrier()
        start = time.perf_counter()
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        dist.barrier()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _modelled_step(machine, ranks, width, layers, batch):
    with simulate(machine, ranks) as watch:
        with facula.device("meta"):
            model, x = _mlp(width, layers), facula.randn(batch, width)
        model = nn.parallel.DistributedDataParallel(model)
        optimizer = facula.optim.AdamW(model.parameters())
        for _ in range(2):
            watch.clock.reset()
            model(x).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        return watch.clock.now


def _best(function):
    times = []
    for _ in range(7):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def machine_here(ranks, network, width, batch):
    """This machine as each of some ranks has it that share its processors.

    Args:
        ranks (int): that compute at once.
        network (SharedMemory): how they are connected.
        width, batch (int): of the product whose speed counts.
    """
    a, b = facula.randn(batch, width), facula.randn(width, width)
    long, to = facula.ones(1 << 24), facula.ones(1 << 24)
    operations = 2 * batch * width * width / _best(lambda: a @ b)
    bandwidth = 2 * 4 * long.numel() / _best(lambda: to.copy_(long))
    share = max(1.0, ranks / network.processors)
    return Machine(operations / share, bandwidth / share, 5e-6 * share, 0.0, network)


def check(ranks_list=(2, 4, 8, 16, 32, 64), sizes=(1 << 12, 1 << 16, 1 << 20, 1 << 23)):
    """Measure on this machine, fit the network to 2 and 8 ranks, and compare with the model.

    Args:
        ranks_list (sequence of int): numbers of ranks.
        sizes (sequence of int): bytes of collectives.

    Returns:
        (SharedMemory, list of Pair): what was fitted, and collectives and steps
    """
    before = facula.get_num_threads()
    facula.set_num_threads(1)
    try:
        measured = measure_collectives(ranks_list, sizes)
        known = {key: s for key, s in measured.items() if key[1] in (2, 8)} or measured
        network = fit(known)
        pairs = [
            Pair(name, ranks, nbytes, seconds, network.seconds(name, nbytes, ranks))
            for (name, ranks, nbytes), seconds in measured.items()
        ]
        width, layers, batch = 768, 6, 256
        for ranks in ranks_list[:3]:
            seconds = max(threads.run(_measured_step, ranks, (width, layers, batch)))
            machine = machine_here(ranks, network, width, batch)
            modelled = _modelled_step(machine, ranks, width, layers, batch)
            pairs.append(Pair("step of DDP", ranks, 0, seconds, modelled))
    finally:
        facula.set_num_threads(before)
    return network, pairs
