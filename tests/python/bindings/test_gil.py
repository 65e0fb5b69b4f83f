"""Which calls let other Python threads run: those of more than a few microseconds."""

import sys
import threading
import time

import facula
import pytest

LONG = {
    "product": lambda: facula.mm(facula.ones(128, 128), facula.ones(128, 128)),
    "product by operator": lambda: facula.ones(128, 128) @ facula.ones(128, 128),
    "linear": lambda: facula.nn.functional.linear(facula.ones(64, 64), facula.ones(64, 64)),
    "function": lambda: facula.exp(facula.ones(20_000)),
    "zeros": lambda: facula.zeros(100, 200),
    "rand": lambda: facula.rand((100, 200)),
    "sort": lambda: facula.sort(facula.ones(20_000)),
}
SHORT = {
    "sum of two": lambda: facula.ones(1000) + facula.ones(1000),
    "small product": lambda: facula.ones(8, 8) @ facula.ones(8, 8),
    "view": lambda: big.view(-1),
    "transpose": lambda: big.t(),
}
big = facula.ones(1000, 1000)


@pytest.fixture
def bystander():
    """How often another thread got the GIL, which here only who lets go of it gives away."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    turns, stop = [], threading.Event()

    def take_turns():
        while not stop.is_set():
            turns.append(1)
            time.sleep(0)

    thread = threading.Thread(target=take_turns)
    thread.start()
    yield turns
    stop.set()
    thread.join()
    sys.setswitchinterval(before)


@pytest.mark.eager("kernels run at the end")
@pytest.mark.parametrize("name", LONG)
def test_long_calls_let_others_run(name, bystander):
    deadline, met = time.monotonic() + 20, len(bystander)
    while len(bystander) == met and time.monotonic() < deadline:
        LONG[name]()
    assert len(bystander) > met


@pytest.mark.parametrize("name", SHORT)
def test_short_calls_and_views_keep_the_gil(name, bystander):
    met = len(bystander)
    for _ in range(2000):
        SHORT[name]()
    assert len(bystander) == met
