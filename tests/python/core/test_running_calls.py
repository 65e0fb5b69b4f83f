"""Calls without the GIL own what they read: other threads change tensors meanwhile."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """
import os, threading, time, facula
facula.set_num_threads(1)
# Large enough for a call to let go of the GIL. The thread sanitizer looks at each element.
big = 20_000 if "TSAN_OPTIONS" in os.environ else 300_000
stop = time.monotonic() + 1.0
failures = []
def repeat(f):
    def run():
        try:
            while time.monotonic() < stop:
                f()
        except BaseException as error:
            failures.append(repr(error))
    return run
def together(*functions):
    threads = [threading.Thread(target=repeat(f)) for f in functions]
    for t in threads: t.start()
    for t in threads: t.join()
    assert not failures, failures
"""

CASES = {
    "set": """
x = facula.ones(big)
def change():
    x.set_()
    x.set_(facula.ones(big))
def read():
    y = x * 2
    assert y.numel() in (0, big) and bool((y == 2).all())
together(read, change, read)
""",
    "data": """
x = facula.ones(big)
def change():
    x.data = facula.ones(3)
    x.data = facula.ones(big)
def read():
    y = x * 2
    assert y.numel() in (3, big) and bool((y == 2).all())
together(read, change, read)
""",
    "resize_": """
x = facula.ones(big)
def change():
    x.resize_(10)
    x.resize_(2 * big).fill_(1)
    x.untyped_storage().resize_(0)
    x.untyped_storage().resize_(8 * big)
    x.fill_(1)
def read():
    try:
        y = x * 2
        z = x.sum()
    except RuntimeError as error:
        assert "resized to 0 bytes" in str(error), error
        return
    assert y.numel() in (10, big, 2 * big)
together(read, change, read)
""",
    "six_dimensions": """
a = facula.ones(1, 2, 3, 4, 5, 6, 100)
b = facula.ones(1, 2)
x = facula.ones(1)
def change():
    x.set_(a)
    x.set_(b)
def read():
    y = x * 2
    assert tuple(y.shape) in ((1,), (1, 2, 3, 4, 5, 6, 100), (1, 2))
together(read, change, read)
""",
    "out": """
x = facula.ones(1)
small, large = facula.ones(9000), facula.ones(big)
def grow():
    facula.add(large, 1, out=x)
    x.set_()
def read():
    y = x * 2
    assert y.numel() in (0, 1, big), y.numel()
together(read, grow, read)
""",
    "two_out": """
x = facula.ones(1)
small, large = facula.ones(9000), facula.ones(big)
def write(source):
    def run():
        try:
            facula.add(source, 1, out=x)
        except RuntimeError as error:
            assert "at once" in str(error) or "output with shape" in str(error), error
        x.resize_(0)
    return run
together(write(small), write(large))
""",
    "backward": """
w = facula.ones(20000, requires_grad=True)
other = facula.ones(20000)
def learn():
    (w * other * w).sum().backward()
def change():
    other.set_()
    other.set_(facula.ones(20000))
def tolerant():
    try:
        learn()
    except RuntimeError as error:
        text = str(error)
        assert "modified by an inplace" in text or "size" in text or "version" in text, text
together(tolerant, change)
""",
    "no_gradient": """
w = facula.ones(20000, requires_grad=True)
def learn():
    (w * 2).sum().backward()
def forget():
    w.grad = None
together(learn, learn, forget)
""",
    "export": """
x = facula.ones(big)
sources = [facula.ones(big), facula.ones(2 * big)]
def grow():
    global x
    x = facula.ones(1)
    for s in sources:
        try:
            facula.add(s, 1, out=x)
        except RuntimeError as error:
            assert "not resizable" in str(error), error
def export():
    n = x.numpy()
    n.sum()  # of numbers that another thread may just be writing: reading them must be safe
    assert n.size in (1, big, 2 * big)
together(grow, export, export)
""",
    "versions": """
def shared(w):
    return lambda: w.view(-1)
for _ in range(300):
    w = facula.ones(4, requires_grad=True)
    barrier = threading.Barrier(4)
    views = []
    def run():
        barrier.wait()
        views.append(w.detach())
    threads = [threading.Thread(target=run) for _ in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    views[0].add_(1)
    assert {v._version for v in views} == {w._version} == {1}
""",
}


# Here threads read elements that others write, on purpose: under the thread sanitizer what kernels
# read and write is not reported, everything else is.
SUPPRESSED = Path(__file__).with_name("elements.supp")


def _environment():
    options = os.environ.get("TSAN_OPTIONS")
    if options is None:
        return None
    return {**os.environ, "TSAN_OPTIONS": f"{options}:suppressions={SUPPRESSED}"}


@pytest.mark.parametrize("name", CASES)
def test_threads_share_tensors(name):
    done = subprocess.run(
        [sys.executable, "-c", HEAD + CASES[name]],
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
