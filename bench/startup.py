"""What starting costs: seconds and resident memory of an import, in processes of their own."""

import statistics
import subprocess
import sys

from bench.harness import Result, geomean_line, header, row

PROBE = """
import time
began = time.perf_counter()
{code}
seconds = time.perf_counter() - began
pages = int(open('/proc/self/statm').read().split()[1])
import resource
print(seconds, pages * resource.getpagesize())
"""


def probe(code):
    """(seconds, resident bytes) of a fresh interpreter that runs `code`; None when it fails."""
    run = subprocess.run(
        [sys.executable, "-c", PROBE.format(code=code)], capture_output=True, text=True
    )
    if run.returncode:
        return None
    seconds, memory = run.stdout.split()
    return float(seconds), float(memory)


def statements(name):
    """What is measured: (label, code) by case."""
    with_parts = "\n".join(f"import {name}.{part}" for part in ("nn", "optim", "utils.data"))
    return [
        ("import M", f"import {name}"),
        ("import M, nn, optim, data", f"import {name}\n{with_parts}"),
        ("import M, add two tensors", f"import {name}\n{name}.ones(1) + {name}.ones(1)"),
    ]


def measure_case(label, codes, rounds):
    """Alternates over modules; returns the results for time and for memory over a bare Python."""
    bare = statistics.median(probe("pass")[1] for _ in range(3))
    found = {name: [] for name in codes}
    for _ in range(rounds):
        for name, code in codes.items():
            found[name].append(probe(code))
    results = []
    for column in (0, 1):
        offset = bare if column else 0.0
        values = {
            n: statistics.median(p[column] - offset for p in probes)
            for n, probes in found.items()
            if all(probes)
        }
        first = next(iter(codes))
        ratios = {
            n: v / values[first]
            for n, v in values.items()
            if n != first and values.get(first, 0) > 0
        }
        results.append(Result(label, values, ratios))
    return results


def megabytes(value):
    """Bytes as text."""
    return f"{value / 2**20:.1f} MB"


def run_startup(names, rounds=7):
    """Measures imports, prints tables of time and of memory over a bare Python; the results."""
    by_name = {name: statements(name) for name in names}
    times, memories = [], []
    for index, (label, _) in enumerate(by_name[names[0]]):
        codes = {name: by_name[name][index][1] for name in names}
        in_time, in_memory = measure_case(label, codes, rounds)
        times.append(in_time)
        memories.append(in_memory)
    for title, results, show in (
        ("start: time", times, None),
        ("start: memory", memories, megabytes),
    ):
        print(header(title, names))
        for result in results:
            print(row(result, names, show) if show else row(result, names))
        if len(names) > 1:
            print(geomean_line(results, names))
        print(flush=True)
    return [r._replace(family="time") for r in times] + [
        r._replace(family="memory") for r in memories
    ]
