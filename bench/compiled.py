"""Compiled functions beside eager ones, of facula and of PyTorch: four sides in turns.

`python -m bench --only compile` prints for each case microseconds of a call of all four and the
first call's milliseconds; then whole steps of training (ours compiled whole, PyTorch's with its
loss compiled), programs whose steps differ, GPT-2 decoding, and the peak memory of the steps; the
last two in processes of their own.
"""

import gc
import itertools
import json
import statistics
import subprocess
import sys
import time

from bench import harness, models
from bench.peak import status_bytes
from bench.startup import megabytes


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


def policy(m):
    """A small step of reinforcement learning: log-probabilities of actions times returns."""
    model = m.nn.Sequential(m.nn.Linear(4, 64), m.nn.Tanh(), m.nn.Linear(64, 2))
    states, returns = m.randn(32, 4), m.randn(32)
    actions = m.arange(32) % 2

    def loss(model):
        log_probabilities = m.log_softmax(model(states), -1)
        return -(log_probabilities.gather(1, actions[:, None]).squeeze(1) * returns).mean()

    return model, loss


def varying_lengths(m):
    """Sequences of another length at each step through a layer of a transformer."""
    model = m.nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True)
    batches = itertools.cycle([m.randn(8, 16 + 5 * i % 47, 128) for i in range(23)])
    next_batch = m.compiler.disable(lambda: next(batches))
    return model, lambda model: model(next_batch()).square().mean()


def layer_drop(m):
    """A deep network that leaves out every third layer, others at each step."""
    layers = [m.nn.Sequential(m.nn.Linear(256, 256), m.nn.GELU()) for _ in range(12)]
    model, x, steps = m.nn.ModuleList(layers), m.randn(64, 256), itertools.count()
    next_step = m.compiler.disable(lambda: next(steps))

    def loss(model):
        h, step = x, next_step()
        for i, layer in enumerate(model):
            if (i * 7 + step) % 3:
                h = h + layer(h)
        return h.square().mean()

    return model, loss


def forced_collection(m):
    """A step of an MLP in which the program collects garbage."""
    model, loss = models.MODELS["MLP"](m)
    collect = m.compiler.disable(gc.collect)

    def collecting(model):
        collect()
        return loss(model)

    return model, collecting


STEPS = {
    **models.MODELS,
    "policy gradient": policy,
    "varying lengths": varying_lengths,
    "LayerDrop": layer_drop,
    "forced collection": forced_collection,
}


def training_step(m, build, compiled):
    """One step of training as a function without arguments."""
    m.manual_seed(0)
    model, loss = build(m)
    optimizer = m.optim.AdamW(model.parameters(), lr=1e-3)
    ours = m.__name__ == "facula"
    value_of = m.compile(lambda: loss(model)) if compiled and not ours else lambda: loss(model)

    def step():
        optimizer.zero_grad()
        value = value_of()
        value.backward()
        optimizer.step()
        return value

    return m.compile(step) if compiled and ours else step


def run_step(build, modules, rounds=5):
    """Microseconds of a step, and of the first, by side."""
    runs, firsts = {}, {}
    for name, m in modules.items():
        for compiled in (False, True):
            label = f"{name} compiled" if compiled else name
            runs[label] = training_step(m, build, compiled)
            firsts[label] = first_call(runs[label], ()) * 1e3
    for run in runs.values():
        run()
    counts = {name: harness.calls_in_round(run) for name, run in runs.items()}
    times = harness.take_turns(runs, counts, rounds, pause=harness.OPENMP_SPINS)
    return {name: (statistics.median(t) * 1e6, firsts[name]) for name, t in times.items()}


PEAK_PROBE = """
import sys
from bench import compiled, harness
module = harness.load_modules([sys.argv[1]])[sys.argv[1]]
print(compiled.peak_of(module, sys.argv[2], sys.argv[3] == "compiled"))
"""


def set_up(m):
    """Makes what a process has once: threads, products, a compiler that has made a loop."""
    (m.ones(64, 64) @ m.ones(64, 64)).sum().item()
    x = m.ones(1 << 14)
    compiled = m.compile(lambda x: (x * 2 + 1).exp() - x)
    for _ in range(3):
        compiled(x)
        if m.__name__ == "facula":
            m._C._wait_for_loops()


def peak_of(m, name, compiled):
    """Bytes by which a few steps raise the resident memory above that of the start.

    What is set up once, as the compiler's library is, is there at the start: it is no tensor, and
    the second model of a process does not pay for it.
    """
    set_up(m)
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")  # the peak is that of now
    before = status_bytes("VmRSS")
    step = training_step(m, STEPS[name], compiled)
    for _ in range(3):
        step()
    return status_bytes("VmHWM") - before


def run_peak(name, modules):
    """The peak of a step by side, each in a process of its own; None where it fails.

    Compiled sides run twice: the first process fills the cache on disk, so that no compiler works
    beside the steps of the second.
    """
    found = {}
    for module, how in itertools.product(modules, ("eager", "compiled")):
        command = [sys.executable, "-c", PEAK_PROBE, module, name, how]
        for _ in range(2 if how == "compiled" else 1):
            done = subprocess.run(command, capture_output=True, text=True)
        found[f"{module} {how}"] = float(done.stdout) if done.returncode == 0 else None
    return found


def run_decoding(modules, rounds=3):
    """Microseconds a token of GPT-2, and the first compiled token, by side; None without it."""
    found = {}
    for name in list(modules) * rounds:
        program = ["-m", "facula", "run"] if name == "facula" else []
        command = [sys.executable, *program, "-m", "bench.gpt2_decoding"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return None
        told = json.loads(done.stdout.splitlines()[-1])
        for kind, label in (("eager", name), ("compiled", f"{name} compiled")):
            found.setdefault(label, []).append((told[kind] * 1e3, told["first"]))
    return {name: tuple(map(statistics.median, zip(*t, strict=True))) for name, t in found.items()}


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
    times = harness.take_turns(runs, counts, rounds, pause=harness.OPENMP_SPINS)
    return {name: (statistics.median(t) * 1e6, found[name][1] * 1e3) for name, t in times.items()}


def run_suite(modules, chosen=None):
    """Runs the table and prints it; `chosen` picks cases whose name contains it."""
    names = [f"{n}{c}" for n in modules for c in ("", " compiled")]
    print(f"{'us a call (first call, ms)':36s}" + "".join(f"{n:>24s}" for n in names))

    def show(name, found):
        row = "".join(f"{us:12.2f} ({first:8.2f})  " for us, first in found.values())
        print(f"{name:36s}{row}", flush=True)

    for case in CASES:
        if not chosen or chosen in case[0]:
            show(case[0], run_case(case, modules))
    steps = [name for name in STEPS if not chosen or chosen in name]
    for name in steps:
        show(f"step of {name}", run_step(STEPS[name], modules))
    if not chosen or chosen in "GPT-2":
        found = run_decoding(modules)
        show("GPT-2, a token", found) if found else print("GPT-2: transformers is not installed")
    for name in steps:
        peaks = run_peak(name, modules).values()
        row = "".join(f"{megabytes(p) if p is not None else 'failed':>22s}  " for p in peaks)
        print(f"{f'peak memory, {name}':36s}{row}", flush=True)
