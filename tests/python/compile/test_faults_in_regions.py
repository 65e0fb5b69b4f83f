"""What goes wrong in a compiled function: nothing is lost, nothing hangs, errors name the line."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import traceback

import facula
import pytest

BACKENDS = ["inductor", "eager", "aot_eager"]
SIZE = 4000


def large(value=1.0):
    return facula.full((SIZE,), value)


def line_of(error):
    """The last line of this file that an error has passed."""
    frames = traceback.extract_tb(error.__traceback__)
    return next(f.line for f in reversed(frames) if f.filename == __file__)


@pytest.mark.parametrize("backend", BACKENDS)
def test_writes_before_an_exception_are_made(backend):
    kept = []

    def f(x):
        x.mul_(2)
        kept.append(x + 1)
        raise KeyError("in the middle")

    x = large()
    with pytest.raises(KeyError, match="in the middle") as error:
        facula.compile(f, backend=backend)(x)
    assert line_of(error.value) == 'raise KeyError("in the middle")'
    assert x[0].item() == 2 and kept[0].sum().item() == 3 * SIZE


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_operator_that_refuses_is_named_with_its_line(backend):
    def f(x):
        y = x * 2
        z = y @ facula.ones(7)  # the line
        return z + 1

    with pytest.raises(RuntimeError) as error:
        facula.compile(f, backend=backend)(large())
    with pytest.raises(RuntimeError) as eager:
        f(large())
    assert str(error.value) == str(eager.value) and line_of(error.value).endswith("# the line")


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_function_works_after_it_has_failed(backend):
    def f(x, fails):
        y = x * 3
        if fails:
            raise ValueError("wanted")
        return y + 1

    compiled = facula.compile(f, backend=backend)
    for fails in (True, False, True, False):
        if fails:
            with pytest.raises(ValueError, match="wanted"):
                compiled(large(), True)
        else:
            assert compiled(large(), False).sum().item() == 4 * SIZE
    assert not facula.compiler.is_compiling() and (large() + 1).sum().item() == 2 * SIZE


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_interrupt_leaves_what_was_done(backend):
    kept = []

    def f(x):
        x.add_(1)
        kept.append(x * 2)
        signal.raise_signal(signal.SIGINT)
        for _ in range(1000):
            x.add_(1)

    x = large()
    with pytest.raises(KeyboardInterrupt) as error:
        facula.compile(f, backend=backend)(x)
    assert "raise_signal" in line_of(error.value)
    assert x[0].item() == 2 and kept[0].sum().item() == 4 * SIZE
    assert facula.compile(lambda x: x + 1, backend=backend)(x).sum().item() == 3 * SIZE


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_exception_in_an_exception_keeps_both(backend):
    def f(x):
        try:
            x.view(7, 7)
        except RuntimeError:
            raise LookupError("second") from None
        finally:
            x.add_(1)

    x = large()
    with pytest.raises(LookupError, match="second"):
        facula.compile(f, backend=backend)(x)
    assert x[0].item() == 2


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_thread_that_dies_in_a_region_disturbs_no_other(backend):
    shared, kept = large(), []

    def f(x):
        y = x + 1
        kept.append(y)
        raise SystemExit

    thread = threading.Thread(target=facula.compile(f, backend=backend), args=(shared,))
    thread.start()
    thread.join(timeout=60)
    assert not thread.is_alive() and kept[0].sum().item() == 2 * SIZE
    compiled = facula.compile(lambda x: x * 2, backend=backend)
    assert compiled(shared).sum().item() == 2 * SIZE


@pytest.mark.parametrize("backend", BACKENDS)
def test_values_of_a_region_are_read_by_a_thread_that_it_starts(backend):
    found = []

    def f(x):
        y = x + 1
        # The end of the segment: threads see tensors, not what is put off for them.
        facula._dynamo.graph_break()
        thread = threading.Thread(target=lambda: found.append(y.sum().item()))
        thread.start()
        thread.join(timeout=60)
        return y * 2

    out = facula.compile(f, backend=backend)(large())
    assert found == [2 * SIZE] and out.sum().item() == 4 * SIZE


FORKS = """
import os, sys, facula

def f(x):
    y = x * 2
    child = os.fork()
    z = (y + 1).sum().item()
    if child == 0:
        os._exit(0 if z == 3 * 4000 else 1)
    _, status = os.waitpid(child, 0)
    return z, os.waitstatus_to_exitcode(status)

assert facula.compile(f, backend={backend!r})(facula.ones(4000)) == (3 * 4000, 0)
assert facula.compile(lambda x: x + 1, backend={backend!r})(facula.ones(4000)).sum().item() == 8000
print("both")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("backend", BACKENDS)
def test_both_processes_go_on_after_a_fork_in_a_region(backend):
    code = textwrap.dedent(FORKS.format(backend=backend))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "both\n", done.stderr
