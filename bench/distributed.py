"""Collectives and training steps of 2 and 4 processes of this machine, beside PyTorch's Gloo.

Each module has its processes, which sleep while those of the other are timed.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.harness import Result, geomean_line, header, row

# What each rank runs: reads (case, number of calls) and prints the seconds of a call.
WORKER = """
import importlib, json, os, sys, time
name, rank, size, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
M = importlib.import_module(name)
dist = importlib.import_module(name + ".distributed")
M.set_num_threads(1)
dist.init_process_group("gloo", init_method="file://" + os.path.join(folder, name), rank=rank,
                        world_size=size)

def step_of(name):
    from bench import models
    M.manual_seed(0)
    model, loss = models.MODELS[name](M)
    optimizer = M.optim.AdamW(model.parameters(), lr=1e-3)
    parallel = M.nn.parallel.DistributedDataParallel(model)
    def step():
        optimizer.zero_grad()
        loss(parallel).backward()
        optimizer.step()
    return step

def case(call, n):
    if call.startswith("step of "):
        return step_of(call[8:])
    x, y = M.ones(n), M.ones(n * size)
    if call == "all_reduce":
        return lambda: dist.all_reduce(x)
    if call == "broadcast":
        return lambda: dist.broadcast(x, 0)
    if call == "all_gather":
        return lambda: dist.all_gather_into_tensor(y, x)
    if call == "reduce_scatter":
        return lambda: dist.reduce_scatter_tensor(x, y)
    if call == "all_to_all":
        z = M.ones(n * size)
        return lambda: dist.all_to_all_single(z, y)
    if call == "barrier":
        return lambda: dist.barrier()
    def there_and_back():
        if rank == 0:
            dist.send(x, 1)
            dist.recv(x, 1)
        elif rank == 1:
            dist.recv(x, 0)
            dist.send(x, 0)
    return there_and_back

for line in sys.stdin:
    call, n, count = json.loads(line)
    f = case(call, n)
    f()
    dist.barrier()
    began = time.perf_counter()
    for _ in range(count):
        f()
    seconds = (time.perf_counter() - began) / count
    dist.barrier()
    if rank == 0:
        print(json.dumps(seconds), flush=True)
dist.destroy_process_group()
"""

CASES = [
    *(("all_reduce", n) for n in (1, 1 << 10, 1 << 14, 1 << 18, 1 << 22)),
    *(("broadcast", n) for n in (1, 1 << 18)),
    *(("all_gather", n) for n in (1, 1 << 18)),
    *(("reduce_scatter", n) for n in (1, 1 << 18)),
    *(("all_to_all", n) for n in (1, 1 << 18)),
    ("barrier", 0),
    *(("send and back", n) for n in (1, 1 << 18)),
]
# With DistributedDataParallel, by two processes.
STEPS = [("step of ResNet", 0), ("step of GPT", 0), ("step of MLP", 0)]
SECONDS_A_ROUND = 0.15


class Ranks:
    """The processes of one module."""

    def __init__(self, name, size, folder):
        place = os.path.dirname(os.path.dirname(sys.modules[name].__file__))
        root = str(Path(__file__).resolve().parents[1])
        path = os.pathsep.join([place, root, os.environ.get("PYTHONPATH", "")])
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-c", WORKER, name, str(rank), str(size), folder],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if rank == 0 else None,
                text=True,
                env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            )
            for rank in range(size)
        ]

    def seconds(self, call, n, count):
        """The time of a call, of so many calls."""
        for p in self.processes:
            p.stdin.write(json.dumps([call, n, count]) + "\n")
            p.stdin.flush()
        line = self.processes[0].stdout.readline()
        if not line:
            raise RuntimeError(f"the ranks failed in {call} of {n} elements")
        return json.loads(line)

    def end(self):
        """Let them end; those that do not are killed."""
        for p in self.processes:
            p.stdin.close()
        for p in self.processes:
            try:
                p.wait(10)
            except subprocess.TimeoutExpired:
                p.kill()


def measure(label, call, n, ranks, rounds):
    """One case, the modules in turns."""
    names = list(ranks)
    counts = {}
    for name in names:
        guess = ranks[name].seconds(call, n, 3)
        counts[name] = max(3, min(5000, int(SECONDS_A_ROUND / max(guess, 1e-6))))
    found = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            found[name].append(ranks[name].seconds(call, n, counts[name]))
    values = {name: statistics.median(v) for name, v in found.items()}
    ratios = {name: values[name] / values[names[0]] for name in names[1:]}
    return Result(label, values, ratios)


def size_text(n):
    """Bytes of n floats as text."""
    for unit, bytes_ in (("MB", 1 << 20), ("KB", 1 << 10)):
        if 4 * n >= bytes_:
            return f"{4 * n // bytes_} {unit}"
    return f"{4 * n} B"


def run_distributed(names, pattern=None, rounds=5):
    """Measures collectives, prints a table for each number of processes; the results."""
    results = []
    for size in (2, 4):
        with tempfile.TemporaryDirectory() as folder:
            ranks = {name: Ranks(name, size, folder) for name in names}
            try:
                rows = []
                for call, n in CASES + (STEPS if size == 2 else []):
                    label = f"{call} {size_text(n)}" if n else call
                    if pattern is None or pattern in label:
                        rows.append(measure(label, call, n, ranks, rounds))
            finally:
                for r in ranks.values():
                    r.end()
        title = f"{size} processes"
        print(header(title, names))
        for result in rows:
            print(row(result, names))
        if len(names) > 1 and rows:
            print(geomean_line(rows, names))
        print(flush=True)
        results += [r._replace(family=f"{size} processes") for r in rows]
    return results
