"""Ctrl-C in long calls: KeyboardInterrupt ends them, and everything works on afterwards."""

import signal
import time

import isolated
import pytest

# Each runs for seconds, in little memory. It begins by saying so, and is interrupted then.
LONG = {
    "elementwise": "m.special.zeta(m.full((1,), 1.5).expand(100_000_000), m.ones(1))",
    "sum": "m.ones(1).expand(30_000_000_000).sum()",
    "product of matrices": "x = m.ones(6000, 6000); x @ x",
    "convolution": "m.conv2d(m.ones(16, 256, 96, 96), m.ones(512, 256, 5, 5))",
    "attention": "q = m.ones(4, 16, 8192, 64); "
    "m.nn.functional.scaled_dot_product_attention(q, q, q)",
    "backward": "x = m.ones(2000, 2000, requires_grad=True); y = x\n"
    "for _ in range(10): y = y @ x\n"
    "y.sum().backward()",
    "tolist": "m.ones(1).expand(300_000_000).tolist()",
    "list of views": "list(m.ones(1).expand(20_000_000))",
    "tensor of a list": "m.tensor([[1.0] * 1_000_000] * 300)",
    "one thread": "m.set_num_threads(1); x = m.ones(6000, 6000); x @ x",
    # One element takes seconds: the caller's, or those of several threads.
    "polynomial": "m.special.laguerre_polynomial_l(m.full((1,), 0.5), 2**40)",
    "polynomials": "m.special.legendre_polynomial_p(m.full((100_000,), 0.5), 2**40)",
    "polynomial of float64": "m.special.chebyshev_polynomial_t("
    "m.ones(1, dtype=m.float64) + 1e-16, 2**40)\n"
    "m.special.laguerre_polynomial_l(m.full((1,), 0.5, dtype=m.float64), 2**40)",
    # Draws hold the lock of their generator.
    "one draw": "m.empty(400_000_000, dtype=m.float16).normal_()",
    "permutation": "m.randperm(300_000_000, dtype=m.int32)",
    "bernoulli": "m.empty(2_000_000_000, dtype=m.bool).bernoulli_(0.3)",
    "multinomial": "m.multinomial(m.ones(1000), 200_000_000, replacement=True)",
    "list of small tensors": "l = [m.ones(1)] * 3_000_000; m._foreach_add(l, l)",
}
BODY = """
import facula as m
def work():
    print("begins", flush=True)
    CALL
try:
    work()
    print("ended by itself")
except KeyboardInterrupt:
    print("interrupted")
# Locks are free, the pool works, and no error is left behind.
print(m.ones(300_000).add(1).sum().item(), m.randn(3).shape[0])
print((m.ones(500, 500) @ m.ones(500, 2)).sum().item())
w = m.ones(3, requires_grad=True)
(w * 2).sum().backward()
print(w.grad.tolist())
"""


def _run(code, after=0.3):
    process = isolated.start(code, memory=5 * isolated.GIGABYTE)
    if process.stdout.readline() != "begins\n":
        pytest.fail(process.communicate()[1])
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=240)
    except isolated.subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    assert process.returncode == 0, err[-3000:]
    return out.splitlines()


@pytest.mark.parametrize("name", LONG)
def test_long_calls_end_when_interrupted(name):
    body = BODY.replace("CALL", LONG[name].replace("\n", "\n    "))
    lines = _run(body)
    assert lines == ["interrupted", "600000.0 3", "500000.0", "[2.0, 2.0, 2.0]"]


NODES = """
import facula as m
x = m.ones(1, requires_grad=True)
y = x
for _ in range(2_000_000):
    y = y + x
print("begins", flush=True)
try:
    y.backward()
    print("ended by itself")
except KeyboardInterrupt:
    print("interrupted", x.grad)
"""


def test_a_backward_of_many_small_nodes_ends_when_interrupted():
    assert _run(NODES) == ["interrupted None"]


HANDLER = """
import signal
import facula as m
seen = []
signal.signal(signal.SIGINT, lambda *args: seen.append(m.ones(100_000).add(1).sum().item()))
print("begins", flush=True)
for _ in range(200):  # the signal comes late on a busy machine
    if not seen:
        m.ones(1).expand(1_000_000_000).sum()
print(seen)
"""


def test_a_handler_that_does_not_raise_runs_and_the_call_goes_on():
    lines = _run(HANDLER, after=0.3)
    assert lines == ["[200000.0]"]


def test_other_threads_are_not_asked():
    out = isolated.run(
        "import threading, time, signal, os\n"
        "import facula as m\n"
        "results = []\n"
        "def work():\n"
        "    results.append(m.ones(1).expand(100_000_000).sum().item())\n"
        "thread = threading.Thread(target=work)\n"
        "thread.start()\n"
        "time.sleep(0.2)\n"
        "try:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(60)\n"
        "except KeyboardInterrupt:\n"
        "    thread.join()\n"
        "print(results)\n"
    )
    assert out == "[100000000.0]\n"
