"""What backward costs per node: a long chain's time less a short one's, by their lengths."""

import gc
import time

from bench.harness import geomean_line, header, row, summarize

SHORT, LONG = 200, 2200
MILLION = 1_000_000

STEPS = {
    "y + b": lambda y, b: y + b,
    "y * b": lambda y, b: y * b,
    "y * y": lambda y, b: y * y,
    "-y": lambda y, b: -y,
    "y.sin()": lambda y, b: y.sin(),
    "y + 1.0": lambda y, b: y + 1.0,
    "y.view(1)": lambda y, b: y.view(1),
}


def backward_seconds(module, step, length):
    """Seconds of one backward through a chain of `length` nodes."""
    x, b = module.ones(1, requires_grad=True), module.ones(1)
    y = x
    for _ in range(length):
        y = step(y, b)
    began = time.perf_counter()
    y.backward()
    return time.perf_counter() - began


def per_node(module, step):
    """Seconds that one more node costs."""
    # The shortest of three: what else runs on the machine only adds.
    long, short = (min(backward_seconds(module, step, n) for _ in range(3)) for n in (LONG, SHORT))
    return (long - short) / (LONG - SHORT)


def compare(name, measure, modules, rounds):
    """A Result of `measure(module)`, the modules taking turns."""
    found = {n: [] for n in modules}
    gc.collect()
    gc.disable()
    try:
        for number in range(rounds):
            order = list(modules.items())
            for n, module in order if number % 2 else reversed(order):
                found[n].append(measure(module))
    finally:
        gc.enable()
    return summarize(name, found, {}, list(modules))


def run_autograd(modules, pattern=None):
    """Prints the table; returns its results."""
    names, results = list(modules), []
    cases = {
        f"backward per node, {text}": (lambda m, step=step: per_node(m, step), 7)
        for text, step in STEPS.items()
    }
    cases["backward of 1,000,000 nodes, -y"] = (
        lambda m: backward_seconds(m, STEPS["-y"], MILLION),
        3,
    )
    print(header("autograd", names), flush=True)
    for name, (measure, rounds) in cases.items():
        if pattern and pattern not in name:
            continue
        results.append(compare(name, measure, modules, rounds))
        print(row(results[-1], names), flush=True)
    if len(names) > 1 and results:
        print(geomean_line(results, names), flush=True)
    print(flush=True)
    return results
