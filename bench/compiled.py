"""Compiled functions beside eager ones, of facula and of PyTorch: four sides in turns.

`python -m bench --only compile` prints for each case microseconds of a call of all four, the first
call of the compiled function beside the first eager one, and the ratios.
"""

import statistics
import time

from bench import harness


def chain(m, n):
    """gelu(x * b + c), written by hand from primitives."""
    x, b, c = m.randn(n), m.randn(n), m.randn(n)

    def f(x, b, c):
        y = x * b + c
        return 0.5 * y * (1 + m.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))

    return f, (x, b, c)


def gelu(m, n):
    x, b, c = m.randn(n), m.randn(n), m.randn(n)
    return lambda x, b, c: m.nn.functional.gelu(x * b + c), (x, b, c)


def ten(m, n):
    """Ten cheap operators."""
    x, y = m.randn(n), m.randn(n)

    def f(x, y):
        a = x.add(y)
        a = a.mul(y).sub(x).relu().add(x).mul(x).sigmoid().add(y).sub(y)
        return a.mul(x)

    return f, (x, y)


def ten_backward(m, n):
    f, (x, y) = ten(m, n)
    x.requires_grad_(True)

    def g(x, y):
        x.grad = None
        f(x, y).sum().backward()
        return x.grad

    return g, (x, y)


def layer_norm(m, rows, width):
    """A layer norm written by hand."""
    x, w, b = m.randn(rows, width), m.randn(width), m.randn(width)

    def f(x, w, b):
        mean = x.mean(-1, keepdim=True)
        centered = x - mean
        variance = (centered * centered).mean(-1, keepdim=True)
        return centered * m.rsqrt(variance + 1e-5) * w + b

    return f, (x, w, b)


def softmax(m, rows, width):
    x = m.randn(rows, width)

    def f(x):
        e = (x - x.amax(-1, keepdim=True)).exp()
        return e / e.sum(-1, keepdim=True)

    return f, (x,)


def huber(m, n):
    x, y = m.randn(n), m.randn(n)

    def f(x, y):
        d = (x - y).abs()
        return m.where(d < 1, 0.5 * d * d, d - 0.5).mean()

    return f, (x, y)


CASES = [
    *[(f"gelu by hand {n}", chain, (n,)) for n in (16, 1024, 16384, 1 << 20)],
    *[(f"gelu(x*b+c) {n}", gelu, (n,)) for n in (1024, 16384, 1 << 20)],
    *[(f"ten operators {n}", ten, (n,)) for n in (16, 16384, 1 << 20)],
    *[(f"ten operators and backward {n}", ten_backward, (n,)) for n in (16, 16384)],
    ("layer norm by hand 1024x768", layer_norm, (1024, 768)),
    ("softmax by hand 1024x1024", softmax, (1024, 1024)),
    ("huber by hand 1M", huber, (1 << 20,)),
]


def first_call(f, args):
    """Seconds of the first call of a function."""
    began = time.perf_counter()
    f(*args)
    return time.perf_counter() - began


def sides(case, modules):
    """Name of a side -> (function without arguments, seconds of the first call)."""
    _, make, sizes = case
    found = {}
    for name, m in modules.items():
        for compiled in (False, True):
            m.manual_seed(0)
            f, args = make(m, *sizes)
            f = m.compile(f) if compiled else f
            label = f"{name} compiled" if compiled else name
            found[label] = ((lambda f=f, args=args: f(*args)), first_call(f, args))
    return found


def run_case(case, modules, rounds=9):
    """Microseconds of a call, and of the first, by side."""
    found = sides(case, modules)
    runs = {name: run for name, (run, _) in found.items()}
    reference = next(iter(runs.values()))()
    for name, run in runs.items():
        harness.must_agree(reference, run(), name)
    counts = {name: harness.calls_in_round(run) for name, run in runs.items()}
    times = harness.take_turns(runs, counts, rounds, pause=0)
    return {name: (statistics.median(t) * 1e6, found[name][1] * 1e3) for name, t in times.items()}


def run_suite(modules, chosen=None):
    """Runs the table and prints it; `chosen` picks cases whose name contains it."""
    names = [f"{n}{c}" for n in modules for c in ("", " compiled")]
    print(f"{'us a call (first call, ms)':36s}" + "".join(f"{n:>24s}" for n in names))
    for case in CASES:
        if chosen and chosen not in case[0]:
            continue
        found = run_case(case, modules)
        row = "".join(f"{us:12.2f} ({first:8.2f})  " for us, first in found.values())
        print(f"{case[0]:36s}{row}", flush=True)
