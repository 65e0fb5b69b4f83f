"""Functions whose Python is skipped do what they do otherwise: the same bits and effects."""

import functools
import gc
import weakref

import facula
import pytest
import scripts_played
import scripts_refused
from facula import nn
from facula._dynamo import skip
from skipped_scripts import SCRIPTS, net, run

assert scripts_played and scripts_refused  # they fill the table


@pytest.fixture(autouse=True)
def reading_at_once(monkeypatch):
    monkeypatch.setattr(skip, "calls_before", 1)


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_a_script_sees_the_same(name):
    want = run(name, lambda f: f)
    made = []

    def skipping(f):
        made.append(facula.compile(f, options={"skip_python": True}))
        return made[-1]

    assert run(name, skipping) == want
    assert run(name, facula.compile) == want
    counts = skip.counts(made[0])
    _, plays, off = SCRIPTS[name]
    if off is None:
        assert counts["played"] >= plays, counts
    else:
        assert counts["played"] == 0 and off in counts["refused"], counts


def test_a_program_keeps_nothing_once_python_has_dropped_it():
    model = net()
    f = facula.compile(model, options={"skip_python": True})
    for _ in range(4):
        f(facula.ones(2, 3))
    assert skip.counts(f)["played"] > 0
    old = weakref.ref(model[0].weight)
    model[0].weight = nn.Parameter(facula.ones(4, 3))
    f(facula.ones(2, 3))
    gc.collect()
    assert old() is None
    gone = weakref.ref(model[1])
    model.fast = f  # a ring, which the collector frees
    del model, f
    gc.collect()
    assert gone() is None


def test_what_is_told(capfd):
    facula._logging.set_logs(skip=True)
    try:
        f = facula.compile(lambda x: x + 1, options={"skip_python": True})
        g = facula.compile(lambda x: print(end="") or x, options={"skip_python": True})
        for _ in range(5):
            f(facula.ones(2))
            g(facula.ones(2))
    finally:
        facula._logging.set_logs()
    told = capfd.readouterr().err
    assert "its Python is skipped" in told and "its Python runs: it calls print()" in told
    assert skip.counts(f)["played"] > 0


def test_programs_are_bounded():
    f = facula.compile(lambda x, n: x * n, options={"skip_python": True})
    for i in range(200):
        assert f(facula.ones(2), i).tolist() == [i, i]
    counts = skip.counts(f)
    assert counts["programs"] <= 8 and counts["readings"] <= 8


def test_the_switch():
    from facula._inductor import config

    assert skip.counts(facula.compile(lambda x: x)) is None
    with config.patch(skip_python=True):
        assert skip.counts(facula.compile(lambda x: x)) is not None
        assert skip.counts(facula.compile(lambda x: x, options={"skip_python": False})) is None
    with pytest.raises(RuntimeError, match="skip_python as bool; got int"):
        facula.compile(lambda x: x, options={"skip_python": 3})


def test_an_interrupt_ends_a_program():
    import signal

    class Stop(BaseException):
        pass

    def stop(number, frame):
        raise Stop

    def body(x):
        for _ in range(200):
            x = x * 1.5 + 1
        return x

    f = facula.compile(body, options={"skip_python": True})
    for _ in range(4):
        want = f(facula.ones(4))
    before = signal.signal(signal.SIGALRM, stop)
    try:
        for delay in (0.001, 0.005, 0.02):
            signal.setitimer(signal.ITIMER_REAL, delay)
            with pytest.raises(Stop):
                while True:
                    f(facula.ones(4))
            assert not facula._C._is_recording()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert facula.equal(f(facula.ones(4)), want)


@pytest.mark.parametrize("kind", ["partial", "instance", "operator", "method"])
def test_callables_of_all_kinds(kind):
    class Instance:
        def __call__(self, x, y):
            return x * 2 + y

        def method(self, x, y):
            return x - y

    function = {
        "partial": functools.partial(Instance().method, facula.ones(2)),
        "instance": Instance(),
        "operator": facula.add,
        "method": Instance().method,
    }[kind]
    args = (facula.ones(2),) * (1 if kind == "partial" else 2)
    f = facula.compile(function, options={"skip_python": True})
    for _ in range(6):
        assert facula.equal(f(*args), function(*args))
    args = [a + i for i, a in enumerate(args)]
    for _ in range(6):
        assert facula.equal(f(*args), function(*args))
