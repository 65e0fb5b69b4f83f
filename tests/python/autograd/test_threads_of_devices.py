"""The engine's workers, one for each device: errors of several, many roots, forks.

The device is the toy of tests/cpp/plugins, which has two; it is opened in processes of its own.
"""

import importlib.util
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

TOY_FIXTURES = Path(__file__).parents[1] / "dispatch" / "conftest.py"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The path of the toy device's library."""
    spec = importlib.util.spec_from_file_location("toy_device_fixtures", TOY_FIXTURES)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.library_path(tmp_path_factory)


CASES = {
    "errors of two workers": """
        # Both fail at the same time; one error is raised, and none of them is kept.
        class Ours(Exception):
            pass
        both = threading.Barrier(2, timeout=20)
        seen = []
        def fail(g):
            both.wait()
            error = Ours("hook")
            seen.append(weakref.ref(error))
            raise error
        for _ in range(20):
            a = facula.ones(3, device="toy:0", requires_grad=True)
            b = facula.ones(3, device="toy:1", requires_grad=True)
            x, y = a * 2, b * 2
            x.register_hook(fail)
            y.register_hook(fail)
            try:
                facula.autograd.backward([x, y], [facula.ones_like(x), facula.ones_like(y)])
            except Ours:
                pass
            else:
                raise AssertionError("no error")
        gc.collect()
        deadline = time.monotonic() + 10
        while any(r() is not None for r in seen) and time.monotonic() < deadline:
            time.sleep(0.01)
            gc.collect()
        assert len(seen) == 40 and all(r() is None for r in seen), "errors are kept"
    """,
    "many roots on several devices": """
        for _ in range(30):
            leaves = [facula.ones(4, device=d, requires_grad=True)
                      for d in ("toy:0", "toy:1", "cpu") for _ in range(4)]
            roots = [(leaf * 2 + leaf).to("cpu") if i % 2 else leaf * 3
                     for i, leaf in enumerate(leaves)]
            facula.autograd.backward(roots, [facula.ones_like(r) for r in roots])
            for leaf in leaves:
                assert leaf.grad.cpu().tolist() == [3] * 4
        # One node that gets gradients from all of them.
        w = facula.ones(4, requires_grad=True)
        parts = [(w.to(d) * k).to("cpu") for k in range(8) for d in ("toy:0", "toy:1")]
        sum(parts).sum().backward()
        assert w.grad.tolist() == [56] * 4
    """,
    "a child of a process that has workers": """
        w = facula.ones(3, device="toy", requires_grad=True)
        (w * 2).backward(facula.ones(3, device="toy"))
        # The device says that it cannot be used there; the child's engine works on the CPU.
        def body():
            try:
                (w * 3).backward(facula.ones(3, device="toy"))
                raise AssertionError("expected an error")
            except RuntimeError as error:
                assert "Cannot re-initialize toy in forked subprocess" in str(error)
            v = facula.ones(3, requires_grad=True)
            (v * 3).sum().backward()
            assert v.grad.tolist() == [3] * 3
        assert in_child(body) == 0
    """,
    "a hook that forks": """
        status = []
        def fork(g):
            status.append(in_child(lambda: None))
        w = facula.ones(3, requires_grad=True)
        x = w * 1
        x.register_hook(fork)
        (x.to("toy") * 2).to("cpu").sum().backward()
        assert status == [0] and w.grad.tolist() == [2] * 3
        # A child that goes on with the pass hears that it cannot.
        def leave(g):
            global child
            child = os.fork()
        w = facula.ones(3, requires_grad=True)
        y = (w.to("toy") * 2).to("cpu")
        y.register_hook(leave)
        try:
            y.sum().backward()
        except RuntimeError as error:
            os._exit(0 if child == 0 and "forked" in str(error) else 4)
        if child == 0:
            os._exit(5)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    """,
    "settings of the thread that asked": """
        seen = []
        def look(g):
            seen.append((facula.is_grad_enabled(), facula.is_autocast_enabled("cpu"),
                         facula.autograd.is_multithreading_enabled()))
        w = facula.ones(3, device="toy", requires_grad=True)
        x = w * 2
        x.register_hook(look)
        with facula.autocast("cpu", facula.bfloat16):
            x.backward(facula.ones(3, device="toy"), create_graph=True)
        assert seen == [(True, True, True)], seen
    """,
}


@pytest.mark.parametrize("what", CASES)
def test_workers(library, what):
    here = Path(__file__).parent
    prelude = "import sys, ctypes\nsys.path.insert(0, sys.argv[1])\n"
    prelude += "from test_threads_fork_exit import PRELUDE\nexec(PRELUDE)\n"
    prelude += "ctypes.CDLL(sys.argv[2])\nimport warnings\nwarnings.simplefilter('ignore')\n"
    done = subprocess.run(
        [sys.executable, "-c", prelude + textwrap.dedent(CASES[what]), str(here), str(library)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
