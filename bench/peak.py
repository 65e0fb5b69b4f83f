"""Peak memory of each training case, in processes of their own."""

import statistics
import subprocess
import sys
from pathlib import Path

from bench import training
from bench.harness import Result, header, row
from bench.startup import megabytes

STEPS = 3
PROBE = """
import sys
from bench import harness, peak
modules = harness.load_modules([sys.argv[1]])
print(peak.peak_of(modules[sys.argv[1]], sys.argv[2]))
"""


def status_bytes(key):
    """A figure of /proc/self/status in bytes."""
    with open("/proc/self/status", encoding="ascii") as file:
        line = next(line for line in file if line.startswith(key + ":"))
    return int(line.split()[1]) * 1024


def peak_of(module, name):
    """Bytes by which a few steps of a case raise the resident memory above that of the start."""
    case = next(c for c in training.CASES if c.name == name)
    (module.ones(64, 64) @ module.ones(64, 64)).sum().item()  # what is set up once is no tensor
    before = status_bytes("VmRSS")
    run = case.make(module)
    for _ in range(STEPS):
        run()
    return status_bytes("VmHWM") - before


def probe(module_name, case_name):
    """The peak in a fresh process; None where it fails."""
    run = subprocess.run(
        [sys.executable, "-c", PROBE, module_name, case_name],
        capture_output=True,
        text=True,
        cwd=Path(__file__).resolve().parents[1],
    )
    return float(run.stdout) if run.returncode == 0 else None


def run_memory(names, pattern=None):
    """Prints the peak of each case of training; the results, whose `seconds` are bytes."""
    print(header("memory", names), flush=True)
    results = []
    for case in training.CASES:
        if pattern and pattern not in case.name:
            continue
        found = {n: [probe(n, case.name) for _ in range(3)] for n in names}
        peaks = {n: statistics.median(p) for n, p in found.items() if None not in p}
        first = peaks.get(names[0])
        ratios = {n: p / first for n, p in peaks.items() if n != names[0] and first}
        results.append(Result(case.name, peaks, ratios, family=case.family))
        print(row(results[-1], names, megabytes), flush=True)
    print(flush=True)
    return results
