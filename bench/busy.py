"""What becomes of each module when other processes keep all cores busy."""

import os
import statistics
import subprocess
import sys
from contextlib import contextmanager

from bench import models
from bench.harness import OPENMP_SPINS, Case, Result, calls_in_round, header, row, take_turns
from bench.training import model_step

# Spins in C, without a system call: a neighbour who wants a whole core.
SPIN = "while True: sum(range(10**7))"
ROUNDS = 9


def product(m):
    a, b = m.randn(512, 512), m.randn(512, 512)
    return lambda: a @ b


def addition(m):
    a, b = m.randn(1 << 20), m.randn(1 << 20)
    return lambda: a + b


def softmax(m):
    x = m.randn(256, 1000)
    return lambda: m.softmax(x, 1)


def reduction(m):
    x = m.randn(1024, 1024)
    return lambda: x.sum(1)


CASES = [
    Case("mm 512", product),
    Case("add 1M", addition),
    Case("softmax 256x1K", softmax),
    Case("sum rows 1Kx1K", reduction),
    Case("MLP step", model_step(models.mlp, "f32")),
    Case("ResNet step", model_step(models.resnet, "f32")),
]


@contextmanager
def neighbours(count):
    """So many processes that spin as long as the block runs."""
    spinning = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(count)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def medians(runs, counts):
    """Seconds of one call by module: median of rounds in turns."""
    times = take_turns(runs, counts, ROUNDS, pause=OPENMP_SPINS)
    return {name: statistics.median(found) for name, found in times.items()}


def run_busy(modules, pattern=None):
    """Prints how many times longer each case takes beside a spinning process on every core.

    In proportion is 2: half of every core is left. Returns Results whose `seconds` are those
    factors and whose ratios compare the peers' times under load with the first module's.
    """
    names, cores = list(modules), len(os.sched_getaffinity(0))
    for module in modules.values():
        module.set_num_threads(cores)
    print(header(f"busy: slower beside {cores} neighbours", names), flush=True)
    results = []
    for case in CASES:
        if pattern and pattern not in case.name:
            continue
        runs = {name: case.make(module) for name, module in modules.items()}
        counts = {name: calls_in_round(run, 0.05) for name, run in runs.items()}
        quiet = medians(runs, counts)
        with neighbours(cores):
            busy = medians(runs, counts)
        factors = {name: busy[name] / quiet[name] for name in names}
        ratios = {name: busy[name] / busy[names[0]] for name in names[1:]}
        results.append(Result(case.name, factors, ratios))
        print(row(results[-1], names, lambda factor: f"{factor:.1f}x"), flush=True)
    print(flush=True)
    return results
