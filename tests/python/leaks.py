"""Runs the scenarios of lifetimes.py many times and reports what grows.

    python tests/python/leaks.py [--rounds 100000] [--module facula] [--only NAME]

Rounds are shared out so that each scenario gets about the same time. After a warm-up, nothing may
grow with the rounds: allocated blocks, tracked objects, resident memory; with a debug CPython, the
sum of all reference counts.
"""

import argparse
import gc
import importlib
import os
import sys
import time
import warnings

from lifetimes import SCENARIOS

WARM_UP = 8
# What free lists and tables may take on the way, whatever the rounds.
SLACK = {"blocks": 120, "objects": 40, "references": 150, "kilobytes": 4000}

# How many times the rounds a suspicion is looked at again.
REPEATS = (1, 2, 4)


def resident_kilobytes():
    """The process's resident memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def figures():
    """What is compared before and after."""
    gc.collect()
    return {
        "blocks": sys.getallocatedblocks(),
        "objects": len(gc.get_objects()),
        "references": sys.gettotalrefcount() if hasattr(sys, "gettotalrefcount") else 0,
        "kilobytes": resident_kilobytes(),
    }


def run_times(case, module, rounds):
    """Runs a scenario; returns seconds."""
    began = time.perf_counter()
    for _ in range(rounds):
        case.run(module)
    return time.perf_counter() - began


def growth_once(case, module, rounds):
    """What grew by more than the slack, by name, in both halves of the rounds."""
    half = rounds // 2
    seen = [figures()]
    for _ in range(2):
        run_times(case, module, half)
        seen.append(figures())
    # Free lists fill once, when threads happen to overlap; a leak is there in every half.
    steps = {n: min(seen[1][n] - seen[0][n], seen[2][n] - seen[1][n]) for n in SLACK}
    # Whatever leaks once a round grows with the rounds; half of them is beyond doubt.
    most = {n: slack + (half // 2 if n != "kilobytes" else 0) for n, slack in SLACK.items()}
    return {n: steps[n] for n in SLACK if steps[n] > most[n]}


def growth(case, module, rounds):
    """What grows each time it is looked at, with twice the rounds each time.

    Tables of the interpreter grow in steps, and a few rounds may meet two of them; a leak is still
    there when the rounds are many.
    """
    found = {}
    for times in REPEATS:
        found = growth_once(case, module, times * rounds)
        if not found:
            return found
    return found


def shares(cases, module, rounds):
    """Rounds by scenario: about equal time for each, and `rounds` in all."""
    weights = []
    for case in cases:
        run_times(case, module, WARM_UP)
        weights.append(1 / max(run_times(case, module, 3), 1e-6))
    scale = rounds / sum(weights)
    return [max(6, round(w * scale)) for w in weights]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--module", default="facula")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    module = importlib.import_module(options.module)
    for part in ("nn", "autograd"):
        importlib.import_module(f"{options.module}.{part}")
    scheme = getattr(module._C, "_pyobject_scheme", "")
    # A case that a module or scheme leaks by nature is no scenario of leaks.
    ours = options.module == "facula"
    cases = [
        c
        for c in SCENARIOS
        if options.only in c.name and (ours or c.torch is ...) and (scheme != "flag" or c.flag)
    ]
    gc.collect()
    gc.freeze()  # a collection then looks at what the scenarios made
    bad = 0
    total = 0
    for case, rounds in zip(cases, shares(cases, module, options.rounds), strict=True):
        found = growth(case, module, rounds)
        total += rounds
        bad += bool(found)
        text = ", ".join(f"{name} +{value}" for name, value in found.items()) or "nothing grew"
        print(f"{case.name:<48}{rounds:>8} rounds  {text}", flush=True)
    print(f"{total} rounds, {bad} of {len(cases)} scenarios leak")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
