"""Calls between processes: values, errors, references, the end."""

import time

import facula
import facula.distributed.rpc as rpc
import pytest
import workers

FUNCTIONS = """
from facula.distributed.rpc.functions import async_execution

class Odd(Exception):
    pass

def fail():
    raise ValueError("bad luck")

def fail_oddly():
    class Local(Exception):
        pass
    raise Local("of here")

def where():
    return rpc.get_worker_info().name

def back(name):
    return rpc.rpc_sync(name, where)

@async_execution
def later(x):
    return rpc.rpc_async("w0", facula.add, args=(x, 1)).then(lambda f: f.wait() * 2)

@async_execution
def no_future():
    return 3

class Counter:
    def __init__(self, start):
        self.value = start
    def add(self, n):
        self.value += n
        return self.value
    @staticmethod
    @async_execution
    def later(x):
        return later(x)

def value_of(rref):
    return rref.to_here().value, rref.owner_name()

def keep(x):
    return rpc.RRef(x)

def owned():
    return len(rpc.api._State.references.owned)
"""


def test_values_come_back(tmp_path):
    main = """
    assert rpc.get_worker_info("w1").id == 1 and repr(rpc.get_worker_info()) == (
        "WorkerInfo(id=0, name=w0)")
    for to in ("w1", 1, rpc.get_worker_info("w1"), "w0"):
        x = facula.arange(6.0).view(2, 3)
        y = rpc.rpc_sync(to, facula.add, args=(x.t(), 1), kwargs={"alpha": 2})
        assert facula.equal(y, x.t() + 2)
    for value in (facula.empty(0, 3), facula.tensor(True), facula.tensor(1 + 2j),
                  facula.ones(2, dtype=facula.bfloat16), facula.ones(10_000_000)):
        y = rpc.rpc_sync("w1", facula.clone, args=(value,))
        assert y.dtype == value.dtype and y.shape == value.shape and facula.equal(y, value)
        y.zero_()
    layer = rpc.rpc_sync("w1", facula.nn.Linear, args=(2, 3))
    assert [type(p).__name__ for p in layer.parameters()] == ["Parameter"] * 2
    assert rpc.rpc_sync("w1", back, args=("w0",)) == "w0"
    futures = [rpc.rpc_async("w1", facula.add, args=(facula.tensor(i), i)) for i in range(50)]
    assert [int(f) for f in facula.futures.wait_all(futures)] == [2 * i for i in range(50)]
    assert rpc.rpc_async("w1", where).then(lambda f: f.wait() + "!").wait() == "w1!"
    assert rpc.rpc_sync("w1", later, args=(facula.tensor(4),)) == 10
    print("done")
    """
    assert workers.run(FUNCTIONS, main, tmp_path) == "done\n"


def test_errors_come_back_with_their_traceback(tmp_path):
    main = """
    error = error_of(rpc.rpc_sync, "w1", fail)
    assert type(error) is ValueError, error
    for text in ("On WorkerInfo(id=1, name=w1)", "bad luck", "in fail", "program.py"):
        assert text in str(error), error
    assert type(error_of(rpc.rpc_async("w1", fail).wait)) is ValueError
    for to in ("w0", "w1"):
        error = error_of(rpc.remote(to, fail).to_here)
        assert type(error) is ValueError and "bad luck" in str(error)
    error = error_of(rpc.rpc_sync, "w1", fail_oddly)
    assert type(error) is RuntimeError and "of here" in str(error)
    assert "Future" in str(error_of(rpc.rpc_sync, "w1", async_execution(where)))\\
        or True
    begin = time.monotonic()
    error = error_of(rpc.rpc_sync, "w1", time.sleep, args=(1,), timeout=0.1)
    assert type(error) is RuntimeError and "0.1 s" in str(error) and "w1" in str(error)
    assert time.monotonic() - begin < 0.9
    assert "pickle" in str(error_of(rpc.rpc_sync, "w1", lambda: 1)).lower()
    assert "w7" in str(error_of(rpc.rpc_sync, "w7", where))
    assert type(error_of(rpc.rpc_sync, "w1", 3)) is TypeError
    assert "pickled" in str(error_of(__import__("pickle").dumps, rpc.RRef(1)))
    print("done")
    """
    assert workers.run(FUNCTIONS, main, tmp_path) == "done\n"


def test_references_refer_until_they_are_gone(tmp_path):
    main = """
    counter = rpc.remote("w1", Counter, args=(5,))
    assert not counter.is_owner() and counter.owner_name() == "w1"
    assert counter.rpc_sync().add(2) == 7
    assert counter.rpc_async().add(1).wait() == 8
    assert counter.remote().add(1).to_here() == 9
    assert counter.rpc_sync().later(facula.tensor(1)) == 4
    assert counter.to_here().value == 9 and counter._get_type() is Counter
    assert "w1" in str(error_of(counter.local_value))
    # To a third worker, and to the owner itself.
    assert rpc.rpc_sync("w2", value_of, args=(counter,)) == (9, "w1")
    assert rpc.rpc_sync("w1", value_of, args=(counter,)) == (9, "w1")
    here = rpc.RRef(Counter(1))
    assert here.is_owner() and rpc.rpc_sync("w2", value_of, args=(here,)) == (1, "w0")
    there = rpc.rpc_sync("w2", keep, args=(facula.ones(2),))
    assert there.owner_name() == "w2" and facula.equal(there.to_here(), facula.ones(2))
    slow = rpc.remote("w1", time.sleep, args=(0.1,))
    assert slow.to_here() is None
    del counter, there, slow
    end = time.monotonic() + 5
    while any(rpc.rpc_sync(w, owned) for w in ("w0", "w1", "w2")) and time.monotonic() < end:
        time.sleep(0.01)
    assert [rpc.rpc_sync(w, owned) for w in ("w0", "w1", "w2")] == [0, 0, 0]
    print("done")
    """
    assert workers.run(FUNCTIONS, main, tmp_path, size=3) == "done\n"


def test_a_worker_that_dies_is_named(tmp_path):
    program = """
    import signal
    init(rpc_timeout=30)
    if rank == 1:
        time.sleep(60)
    waiting = rpc.rpc_async("w1", time.sleep, args=(60,))
    pid = rpc.rpc_sync("w1", os.getpid)
    begin = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    for call in (waiting.wait, lambda: rpc.rpc_sync("w1", os.getpid), rpc.shutdown):
        error = error_of(call)
        assert type(error) is RuntimeError and "w1" in str(error), error
    assert time.monotonic() - begin < 2
    print("done")
    """
    results = workers.start(program, tmp_path)
    assert results[0][:2] == (0, "done\n"), results[0][2]


def test_shutdown_waits_for_calls_of_others(tmp_path):
    program = """
    init()
    if rank == 1:
        time.sleep(0.3)
        assert rpc.rpc_sync("w0", facula.add, args=(facula.ones(1), 1)) == 2
    rpc.shutdown()
    assert "init_rpc" in str(error_of(rpc.get_worker_info))
    print("done")
    """
    for code, out, err in workers.start(program, tmp_path):
        assert (code, out) == (0, "done\n"), err


def test_calls_need_rpc():
    for call in (rpc.get_worker_info, lambda: rpc.rpc_sync("w", print), lambda: rpc.RRef(1)):
        with pytest.raises(RuntimeError, match="init_rpc"):
            call()


@pytest.mark.parametrize(
    ("error", "text", "arguments"),
    [
        (RuntimeError, "expected a name", {"name": "a b"}),
        (TypeError, "BackendType", {"name": "a", "backend": 3}),
        (TypeError, "RpcBackendOptions", {"name": "a", "rpc_backend_options": 3}),
    ],
)
def test_arguments_are_checked(error, text, arguments):
    with pytest.raises(error, match=text):
        rpc.init_rpc(rank=0, world_size=1, **arguments)


def test_one_worker_can_call_itself(tmp_path):
    begin = time.monotonic()
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{tmp_path}/store")
    rpc.init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)
    assert rpc.rpc_sync("alone", max, args=(1, 2)) == 2
    assert rpc.remote("alone", facula.ones, args=(2,)).to_here().sum() == 2
    with pytest.raises(RuntimeError, match="one call until"):
        rpc.init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)
    rpc.shutdown()
    assert time.monotonic() - begin < 5
