"""Measures cases on several modules alternately and reports medians and ratios.

A case is a function `make(module) -> run`, where `run()` does the work once. Modules take turns
in short rounds, so that a change of the machine's speed meets all of them; the result is the
median over rounds, and the ratio is the median of the ratios of rounds that stand side by side.
"""

import gc
import importlib
import statistics
import time
from typing import NamedTuple

ROUND_SECONDS = 0.02


class Case(NamedTuple):
    """One benchmark: `make(module)` prepares and returns the function that is timed."""

    name: str
    make: object
    rounds: int = 15


class Result(NamedTuple):
    """Seconds of one run by module name, and peer time / first module's time by peer."""

    name: str
    seconds: dict
    ratios: dict


class Unavailable(Exception):
    """A module cannot be measured; the text says why."""


def load_modules(names):
    """Imports modules with what the cases use; raises Unavailable with the reason."""
    modules = {}
    for name in names:
        try:
            module = importlib.import_module(name)
            for part in ("nn", "optim", "utils.data"):
                importlib.import_module(f"{name}.{part}")
        except ImportError as error:
            raise Unavailable(f"{name}: {error}") from None
        modules[name] = module
    return modules


def time_calls(run, count):
    """Seconds of one call, from `count` calls."""
    began = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - began) / count


def calls_in_round(run):
    """How many calls fill a round; warms up on the way."""
    count = 1
    while True:
        seconds = time_calls(run, count)
        if seconds * count >= ROUND_SECONDS / 4:
            return max(1, round(ROUND_SECONDS / seconds))
        count *= 4


def measure(case, modules):
    """Runs one case on all modules in turns. A module that fails has an exception as its time."""
    runs, failed = {}, {}
    for name, module in modules.items():
        try:
            run = case.make(module)
            runs[name] = (run, calls_in_round(run))
        except Exception as error:  # one module's hole must not hide the others' figures
            failed[name] = error
    rounds = {name: [] for name in runs}
    gc.collect()
    gc.disable()
    try:
        for number in range(case.rounds):
            # The order turns round by round: nobody always runs on warm caches.
            order = list(runs.items())
            for name, (run, count) in order if number % 2 else reversed(order):
                rounds[name].append(time_calls(run, count))
    finally:
        gc.enable()
    return summarize(case.name, rounds, failed, list(modules))


def summarize(name, rounds, failed, names):
    """A Result from the times of all rounds; ratios are relative to the first module."""
    seconds = {n: statistics.median(times) for n, times in rounds.items()} | failed
    first = names[0]
    ratios = {}
    for peer in names[1:]:
        if first in rounds and peer in rounds:
            pairs = zip(rounds[peer], rounds[first], strict=True)
            ratios[peer] = statistics.median(p / f for p, f in pairs)
    return Result(name, seconds, ratios)


def duration(value):
    """Seconds as text with a unit; an exception as its first words."""
    if isinstance(value, Exception):
        return type(value).__name__
    for unit, size in (("s ", 1), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def header(title, names):
    """The head of a table: a column of times by module, one of ratios by peer."""
    ratios = "".join(f"{f'{n}/{names[0]}':>18}" for n in names[1:])
    return f"{title:<34}" + "".join(f"{n:>14}" for n in names) + ratios


def row(result, names, show=duration):
    """One line of a table."""
    times = "".join(f"{show(result.seconds[n]) if n in result.seconds else '-':>14}" for n in names)
    ratios = "".join(
        f"{f'{result.ratios[n]:.2f}x' if n in result.ratios else '-':>18}" for n in names[1:]
    )
    return f"{result.name:<34}{times}{ratios}"


def geomean_line(results, names):
    """The last line of a table: geometric means of the ratios that were measured."""
    cells = ""
    for peer in names[1:]:
        found = [r.ratios[peer] for r in results if peer in r.ratios]
        cells += f"{f'{statistics.geometric_mean(found):.2f}x' if found else '-':>18}"
    return f"{'geometric mean':<34}{'':>{14 * len(names)}}{cells}"


def run_table(title, cases, modules, pattern=None):
    """Measures cases whose name contains `pattern`, printing as it goes; returns the results."""
    names = list(modules)
    chosen = [c for c in cases if not pattern or pattern in c.name]
    if not chosen:
        return []
    print(header(title, names), flush=True)
    results = []
    for case in chosen:
        results.append(measure(case, modules))
        print(row(results[-1], names), flush=True)
        for name, error in results[-1].seconds.items():
            if isinstance(error, Exception):
                print(f"    {name}: {error}"[:200], flush=True)
    if len(names) > 1:
        print(geomean_line(results, names), flush=True)
    print(flush=True)
    return results
