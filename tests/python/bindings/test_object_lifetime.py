"""Objects live as long as their tensors and storages, and end once, when both sides are done."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import facula
import facula.autograd
import facula.nn
import pytest
from facula.utils._python_dispatch import TorchDispatchMode
from lifetimes import SCENARIOS

SCHEME = facula._C._pyobject_scheme


@pytest.mark.eager("arguments of put-off calls live on")
@pytest.mark.parametrize("case", SCENARIOS, ids=lambda c: c.name)
def test_objects_live_as_long_as_what_they_stand_for(case):
    if SCHEME == "flag" and not case.flag:
        pytest.xfail("the collector ends objects in garbage that C++ holds without owning them")
    assert case.run(facula) == case.expected


@pytest.mark.eager("arguments of put-off calls live on")
def test_scenarios_with_a_collection_at_every_allocation():
    threshold = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(1, 2, 2)
    try:
        seen = [
            (c.name, c.run(facula) == c.expected) for c in SCENARIOS if SCHEME != "flag" or c.flag
        ]
    finally:
        gc.set_threshold(*threshold)
        gc.unfreeze()
    assert [name for name, as_expected in seen if not as_expected] == []


def test_a_tensor_without_object_gets_one_object():
    x = facula.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    first = x.grad
    assert first is x.grad
    number = id(first)
    del first
    gc.collect()
    assert id(x.grad) == number


def test_dict_is_an_ordinary_attribute():
    t, storage = facula.ones(2), facula.ones(2).untyped_storage()
    for o in (t, storage):
        assert o.__dict__ == {}
        o.__dict__ = {"a": 1}
        assert o.a == 1
        with pytest.raises(TypeError, match="dict"):
            o.__dict__ = 3
        del o.a
        assert not hasattr(o, "a")


def test_a_class_without_new_raises_instead_of_crashing():
    class Empty(facula.Tensor):
        def __new__(cls):
            return object.__new__(cls)

    with pytest.raises(TypeError):
        Empty()


def test_instances_made_while_their_class_is_made():
    seen = []

    class Base(facula.Tensor):
        def __init_subclass__(cls):
            holder = facula.zeros(2)
            holder.grad = facula.ones(2).as_subclass(cls)
            gc.collect()
            seen.append(holder.grad.tolist())

    class Sub(Base):
        __slots__ = ("a",)

    assert seen == [[1.0, 1.0]]
    assert Sub.__mro__[1] is Base


# --- whole processes: what must end with code 0 and without a word

PREFACE = """
import gc, os, sys, threading, time, weakref
import facula as f
import facula.nn, facula.autograd
class Sub(f.Tensor):
    def __del__(self):
        self.__dict__.get("log", []).append(1)
def held(t):
    owner = f.zeros(t.shape)
    owner.grad = t
    return owner
def graph():
    x = f.ones(64, requires_grad=True)
    y = x
    for _ in range(20):
        y = (y * x).as_subclass(Sub)
        y.tag = [1]
    return y.as_subclass(f.Tensor).sum()
"""
PROCESSES = {
    "objects_held_at_exit": """
a = held(f.ones(2).as_subclass(Sub))
a.grad.me = a.grad
b = graph()
c = f.ones(2, requires_grad=True)
c.register_hook(lambda g: c)
d = f.nn.Linear(2, 2)
d.weight.owner = d
sys.modules["kept"] = [a, b, c, d]
""",
    "finalizers_use_tensors_at_exit": """
class Late(f.Tensor):
    def __del__(self):
        self.as_subclass(f.Tensor).sum().item()
        held(self)
a = f.ones(2).as_subclass(Late)
b = held(f.ones(2).as_subclass(Late))
""",
    "atexit_still_has_tensors": """
import atexit
t = held(f.ones(2).as_subclass(Sub))
atexit.register(lambda: (t.grad + 1).sum().item())
""",
    "daemon_threads_in_backward_at_exit": """
def work():
    while True:
        graph().backward()
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
""",
    "daemon_threads_with_hooks_at_exit": """
def work():
    while True:
        x = f.ones(8, requires_grad=True)
        y = x * 2
        y.register_hook(lambda g: g * 1)
        y.sum().backward()
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
""",
    "collection_during_backward": """
stop = []
def collect():
    while not stop:
        gc.collect()
        [type(o) for o in gc.get_objects() if isinstance(o, f.Tensor)]
thread = threading.Thread(target=collect)
gc.freeze()
thread.start()
for _ in range(60):
    loss = graph()
    ref = weakref.ref(loss)
    loss.backward()
    x = f.ones(2, requires_grad=True)
    x.result = x * x
stop.append(1)
thread.join()
""",
    "weak_references_race_with_backward": """
refs, stop = [], []
def look():
    while not stop:
        for ref in list(refs):
            t = ref()
            if t is not None:
                t.as_subclass(f.Tensor).sum().item()
thread = threading.Thread(target=look)
thread.start()
for _ in range(60):
    x = f.ones(4, requires_grad=True)
    y = x
    for _ in range(10):
        y = (y * x).as_subclass(Sub)
        refs.append(weakref.ref(y))
    y.as_subclass(f.Tensor).sum().backward()
    del y, refs[:-40]
stop.append(1)
thread.join()
""",
    "fork_with_held_objects": """
owner, loss = held(f.ones(2).as_subclass(Sub)), graph()
owner.grad.tag = 5
pid = os.fork()
assert owner.grad.tag == 5
loss.backward()
del owner
gc.collect()
if pid:
    assert os.waitpid(pid, 0)[1] == 0
""",
    "fork_while_threads_run_backward": """
graph().backward()  # imports what it needs: a child never gets the import lock of another thread
stop = []
def work():
    while not stop:
        graph().backward()
thread = threading.Thread(target=work, daemon=True)
thread.start()
for _ in range(5):
    pid = os.fork()
    if pid == 0:
        loss = graph()
        loss.backward()
        x = f.ones(2, requires_grad=True)
        x.result = x * x
        ref = weakref.ref(x)
        del x
        gc.collect()
        os._exit(0 if ref() is None else 1)
    assert os.waitpid(pid, 0)[1] == 0
stop.append(1)
thread.join()
""",
}


def process(name):
    """A case of PROCESSES."""
    sanitized = "libasan" in os.environ.get("LD_PRELOAD", "")
    hangs = sanitized and name == "fork_while_threads_run_backward"
    reason = "the address sanitizer's own allocator hangs in a child of a process with threads"
    return pytest.param(name, marks=pytest.mark.skipif(hangs, reason=reason))


@pytest.mark.parametrize("name", [process(name) for name in PROCESSES])
def test_process_ends_well(name):
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PREFACE + PROCESSES[name]],
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_scenarios_leak_nothing():
    script = Path(__file__).parents[1] / "leaks.py"
    # What the address sanitizer keeps back of freed memory would look like a leak.
    given = [os.environ["ASAN_OPTIONS"]] if "ASAN_OPTIONS" in os.environ else []
    options = ":".join([*given, "quarantine_size_mb=1", "thread_local_quarantine_size_kb=64"])
    run = subprocess.run(
        [sys.executable, str(script), "--rounds", "1500"],
        env={**os.environ, "ASAN_OPTIONS": options},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_list_may_lose_its_tensors_during_the_call():
    """The call keeps what its lists held when it began."""

    class Emptying(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            parts.clear()
            gc.collect()
            return func(*args, **(kwargs or {}))

    parts = [facula.full((2,), float(i)) for i in range(3)]
    with Emptying():
        joined = facula.cat(parts)
    assert not parts
    assert joined.tolist() == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]
