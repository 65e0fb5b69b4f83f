"""Forks and the end of the interpreter while other threads work: each body in its own process."""

import os
import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
import os, sys, threading, time, weakref, gc
import facula

def in_child(body, seconds=20):
    # Runs body in a forked child; its status, or "hangs".
    pid = os.fork()
    if pid == 0:
        try:
            body()
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(3)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return "hangs"

def beside(body):
    # Runs body over and over on a thread that does not keep the process.
    stop = threading.Event()
    def loop():
        while not stop.is_set():
            body()
    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    return stop, thread
"""

# Each prints nothing where all is well.
FORKS = {
    "a generator that is drawn from": """
        big = facula.empty(3_000_000)
        stop, _ = beside(lambda: big.normal_())
        for _ in range(3):
            time.sleep(0.02)
            def body():
                facula.manual_seed(1)
                first = facula.randn(4)
                facula.manual_seed(1)
                assert facula.equal(first, facula.randn(4))
            print(in_child(body) or "", end="")
        stop.set()
    """,
    "a generator of its own": """
        g = facula.Generator()
        big = facula.empty(2_000_000)
        stop, _ = beside(lambda: big.uniform_(generator=g))
        for _ in range(3):
            time.sleep(0.02)
            print(in_child(lambda: g.manual_seed(3).get_state()) or "", end="")
        stop.set()
    """,
    "leaves and graphs that threads work on": """
        w = facula.ones(200_000, requires_grad=True)
        y = (w * 2).sum()
        stops = [beside(lambda: y.backward(retain_graph=True))[0] for _ in range(3)]
        def body():
            y.backward(retain_graph=True)
            w.grad = None
            (w * 3).sum().backward()
            assert w.grad.eq(3).all()
        for _ in range(10):
            time.sleep(0.005)
            print(in_child(body) or "", end="")
        for s in stops:
            s.set()
    """,
    "operators that are defined and looked up": """
        from facula.library import Library
        def define():
            lib = Library("forked", "DEF")
            lib.define("f(Tensor x) -> Tensor")
            lib.impl("f", lambda x: x + 1, "CompositeExplicitAutograd")
            lib._destroy()
        stop, thread = beside(define)
        for _ in range(10):
            time.sleep(0.003)
            def body():
                other = Library("child", "DEF")
                other.define("g(Tensor x) -> Tensor")
                other.impl("g", lambda x: x + 1, "CompositeExplicitAutograd")
                assert facula.ops.child.g(facula.ones(1)).item() == 2
            print(in_child(body) or "", end="")
        stop.set()
        thread.join()
    """,
    "tensors that are made and dropped": """
        def churn():
            for n in (3, 300, 30_000, 300_000):
                facula.ones(n).clone()
        stops = [beside(churn)[0] for _ in range(3)]
        for _ in range(10):
            time.sleep(0.003)
            print(in_child(churn) or "", end="")
        for s in stops:
            s.set()
    """,
}


def run(body, *, prelude=PRELUDE, timeout=120):
    return subprocess.run(
        [sys.executable, "-c", prelude + textwrap.dedent(body)],
        capture_output=True,
        text=True,
        timeout=timeout,
    )


@pytest.mark.skipif(
    "ASAN_OPTIONS" in os.environ, reason="the address sanitizer's allocator hangs in such a child"
)
@pytest.mark.parametrize("what", FORKS)
def test_a_fork_beside(what):
    """The child finds every lock free and what it guards whole."""
    done = run(FORKS[what])
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


EXITS = {
    "a hook of a leaf": """
        w = facula.ones(3, requires_grad=True)
        w.register_hook(slow)
        def work():
            (w * 2).sum().backward()
    """,
    "a hook of a result": """
        w = facula.ones(3, requires_grad=True)
        def work():
            y = w * 2
            y.register_hook(slow)
            y.sum().backward()
    """,
    "a Function": """
        class Twice(facula.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @staticmethod
            def backward(ctx, g):
                slow(g)
                return g * 2
        w = facula.ones(3, requires_grad=True)
        def work():
            Twice.apply(w).sum().backward()
    """,
    "hooks of saved tensors": """
        w = facula.ones(3, requires_grad=True)
        def work():
            with facula.autograd.graph.saved_tensors_hooks(lambda t: (slow(t), t)[1],
                                                           lambda t: (slow(t), t)[1]):
                (w * w).sum().backward()
    """,
    "a finalizer": """
        class Slow:
            def __del__(self):
                slow(0)
        w = facula.ones(3, requires_grad=True)
        def work():
            y = w * 2
            y.slow = Slow()
            y = y.sum()
            y.backward()
    """,
}


@pytest.mark.parametrize("what", EXITS)
def test_exit_beside_threads_in(what):
    """The process ends with its own status, whatever daemon threads are doing in Python."""
    body = (
        """
        def slow(g):
            for _ in range(300):
                pass
        """
        + EXITS[what]
        + """
        def forever():
            while True:
                work()
        for _ in range(4):
            threading.Thread(target=forever, daemon=True).start()
        time.sleep(0.1)
        """
    )
    for _ in range(4):
        done = run(body)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_node_that_a_weak_reference_asks_for_again():
    """The callback of a dying object gets another one, and nothing is freed twice."""
    done = run(
        """
        for make in (lambda x: x * 2, lambda x: x.exp(), lambda x: x.sum()):
            for _ in range(50):
                y = make(facula.ones(3, requires_grad=True))
                seen = []
                n = y.grad_fn
                r = weakref.ref(n, lambda _: seen.append(y.grad_fn))
                del n
                gc.collect()
                assert len(seen) == 1 and seen[0] is y.grad_fn
                assert seen[0].name() == y.grad_fn.name()
                del seen
        # An attribute that asks for the node as it goes.
        class Asks:
            def __del__(self):
                found.append(y.grad_fn)
        found = []
        y = facula.ones(3, requires_grad=True) * 2
        y.grad_fn.asks = Asks()
        y.backward(facula.ones(3))
        gc.collect()
        assert found and all(f.name() == "MulBackward0" for f in found)
        # A chain that is too deep for CPython to take down in one go.
        chain = None
        for _ in range(20000):
            node = (facula.ones(1, requires_grad=True) * 2).grad_fn
            node.next = chain
            chain = node
        del node, chain
        gc.collect()
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
