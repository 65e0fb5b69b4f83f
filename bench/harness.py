"""Measures cases on several modules alternately and reports medians and ratios.

A case is a function `make(module) -> run`, where `run()` does the work once. Modules take turns
in short rounds, so that a change of the machine's speed meets all of them; the result is the
median over rounds, and the ratio is the median of the ratios of rounds that stand side by side.
"""

import gc
import importlib
import statistics
import time
from itertools import repeat
from typing import NamedTuple

from bench import limits

ROUND_SECONDS = 0.02
OPENMP_SPINS = 0.02  # seconds for which threads of PyTorch's spin after their work, at most
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
clock = CLOCKS["wall"]


class Case(NamedTuple):
    """One benchmark: `make(module)` prepares and returns the function that is timed.

    `family` groups cases in summaries; `full` cases run with --full only; results of checked cases
    are compared.
    """

    name: str
    make: object
    rounds: int = 15
    family: str = ""
    full: bool = False
    checked: bool = False
    seconds: float = ROUND_SECONDS


class Result(NamedTuple):
    """Seconds of one run by module name, and peer time / first module's time by peer.

    `least` is the time that the machine needs at best (limits.py), zero where that is not asked for
    or unknown; `unknown` then says why.
    """

    name: str
    seconds: dict
    ratios: dict
    family: str = ""
    threads: int = 0
    least: float = 0.0
    spread: dict = {}
    unknown: str = ""

    def of_limit(self, name):
        """The part of the machine's limit that a module reaches; None where it is unknown."""
        seconds = self.seconds.get(name)
        return self.least / seconds if self.least and isinstance(seconds, float) else None


class Unavailable(Exception):
    """A module cannot be measured; the text says why."""


class Disagreement(Exception):
    """Modules compute different results, so that their times cannot be compared."""


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


class Statement:
    """A run of one Python statement, timed as `timeit` does: it stands in the loop itself.

    Args:
        text: the statement.
        names: what the statement's names stand for.

    Example:
        >>> Statement("a + b", {"a": 1, "b": 2})()
        3
    """

    def __init__(self, text, names):
        loop = (
            f"def loop(_turns, {', '.join(names)}):\n    began = clock()\n"
            f"    for _ in _turns:\n        {text}\n    return clock() - began\n"
        )
        scope = {"clock": lambda: clock()}
        exec(compile(loop, f"<statement {text!r}>", "exec"), scope)
        self.loop, self.text, self.names = scope["loop"], text, names

    def __call__(self):
        return eval(self.text, dict(self.names))

    def seconds(self, count):
        """Seconds that the statement takes `count` times."""
        return self.loop(repeat(None, count), *self.names.values())


def time_calls(run, count):
    """Seconds of one call, from `count` calls."""
    if isinstance(run, Statement):
        return run.seconds(count) / count
    began = clock()
    for _ in range(count):
        run()
    return (clock() - began) / count


def use_clock(name):
    """Chooses wall time, or the processor time of all threads for machines that others use."""
    global clock
    clock = CLOCKS[name]


def calls_in_round(run, round_seconds=ROUND_SECONDS):
    """How many calls fill a round; warms up on the way."""
    count = 1
    while True:
        seconds = time_calls(run, count)
        if seconds * count >= round_seconds / 4:
            return max(1, round(round_seconds / seconds))
        count *= 4


def prepare(case, modules):
    """(functions to time, exceptions) by module: a hole in one hides no figures of others."""
    runs, failed, reference = {}, {}, None
    for name, module in modules.items():
        try:
            runs[name] = case.make(module)
            first = runs[name]()
            if case.checked and reference is not None:
                must_agree(expected=first, found=reference, name=name)
            reference = first
        except Exception as error:
            runs.pop(name, None)
            failed[name] = error
    return runs, failed


def strided(t):
    """The numbers of a tensor of any layout in plain memory."""
    if t.is_quantized:
        return t.dequantize()
    if t.is_nested:
        return t.to_padded_tensor(0.0)
    return t if str(t.layout).endswith(".strided") else t.to_dense()


def must_agree(expected, found, name):
    """Raises Disagreement unless two results are equal within rounding of their dtype."""
    if isinstance(expected, (tuple, list)):
        for e, f in zip(expected, found, strict=True):
            must_agree(e, f, name)
        return
    expected, found = strided(expected), strided(found)
    if tuple(expected.shape) != tuple(found.shape):
        raise Disagreement(f"{name}: shape {tuple(expected.shape)}; here {tuple(found.shape)}")
    if expected.is_complex():
        return must_agree((expected.real, expected.imag), (found.real, found.imag), name)
    coarse = str(expected.dtype).endswith("float16")
    e, f = (t.detach().double().numpy() for t in (expected, found))
    scale = abs(e[abs(e) < float("inf")]).max(initial=0.0) + 1e-30
    differ = e != f  # equal infinities are no difference
    worst = abs(e[differ] - f[differ]).max(initial=0.0) / scale
    if not worst <= (0.05 if coarse else 1e-3):
        raise Disagreement(f"{name}: results differ by {worst:.2g} of the largest")


def take_turns(runs, counts, rounds, pause):
    """Seconds of one call by round and module. The order turns: nobody is always the first."""
    times = {name: [] for name in runs}
    gc.collect()
    gc.disable()
    try:
        for number in range(rounds):
            order = list(runs.items())
            for name, run in order if number % 2 else reversed(order):
                if pause:
                    # Workers of the module before may still spin on the processors.
                    time.sleep(pause)
                    run()
                times[name].append(time_calls(run, counts[name]))
    finally:
        gc.enable()
    return times


def measure(case, modules, threads=(0,), bounded=False):
    """Runs one case on all modules in turns; a Result for each number of threads (0: as it is).

    A module that fails has an exception as its time. Bounded: with the machine's limit.
    """
    runs, failed = prepare(case, modules)
    first = next(iter(modules))
    work, unknown = (
        watched(runs[first], modules[first]) if bounded and first in runs else (None, "")
    )
    results = []
    for number in threads:
        for module in modules.values() if number else ():
            module.set_num_threads(number)
        counts = {name: calls_in_round(run, case.seconds) for name, run in runs.items()}
        pause = OPENMP_SPINS if number > 1 else 0
        times = take_turns(runs, counts, case.rounds, pause)
        found = summarize(case.name, times, failed, list(modules))
        least = limits.least_seconds(work, modules.values(), max(1, number))
        found = found._replace(family=case.family, threads=number, least=least, unknown=unknown)
        results.append(found)
    return results


def watched(run, module):
    """What a call has to do, or None and why nobody knows."""
    try:
        return limits.work_of(run, module), ""
    except limits.UnknownWork as error:
        return None, str(error)


def summarize(name, rounds, failed, names):
    """A Result from the times of all rounds; ratios are relative to the first module."""
    seconds = {n: statistics.median(times) for n, times in rounds.items()} | failed
    first = names[0]
    ratios, spread = {}, {}
    for peer in names[1:]:
        if first in rounds and peer in rounds:
            pairs = zip(rounds[peer], rounds[first], strict=True)
            found = sorted(p / f for p, f in pairs)
            ratios[peer] = statistics.median(found)
            spread[peer] = (found[len(found) // 4], found[-1 - len(found) // 4])
    return Result(name, seconds, ratios, spread=spread)


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
    return f"{title:<44}" + "".join(f"{n:>12}" for n in names) + ratios


def row(result, names, show=duration):
    """One line of a table."""
    times = "".join(f"{show(result.seconds[n]) if n in result.seconds else '-':>12}" for n in names)
    ratios = "".join(
        f"{f'{result.ratios[n]:.2f}x' if n in result.ratios else '-':>18}" for n in names[1:]
    )
    label = f"{result.name} /{result.threads}" if result.threads else result.name
    reached = result.of_limit(names[0])
    limit = "" if reached is None else f"{reached:>8.0%} of limit"
    return f"{label:<44}{times}{ratios}{limit}"


def geomean_line(results, names, label="geometric mean"):
    """A line with the geometric means of the ratios that were measured."""
    cells = ""
    for peer in names[1:]:
        found = [r.ratios[peer] for r in results if peer in r.ratios]
        cells += f"{f'{statistics.geometric_mean(found):.2f}x' if found else '-':>18}"
    return f"{label:<44}{'':>{12 * len(names)}}{cells}"


def run_table(title, cases, modules, pattern=None, threads=(0,), bounded=False):
    """Measures cases whose family or name contains `pattern`, printing as it goes; the results."""
    names = list(modules)
    chosen = [c for c in cases if not pattern or pattern in f"{c.family}: {c.name}"]
    if not chosen:
        return []
    print(header(title, names), flush=True)
    results, family = [], ""
    for case in chosen:
        if case.family != family:
            family = case.family
            print(f"-- {family}")
        found = measure(case, modules, threads, bounded)
        for result in found:
            print(row(result, names), flush=True)
        for name, error in found[0].seconds.items():
            if isinstance(error, Exception):
                print(f"    {name}: {error}"[:200], flush=True)
        if found[0].unknown:
            print(f"    no part of the limit: {found[0].unknown}"[:200], flush=True)
        results += found
    print(flush=True)
    return results
