"""What ranks over NCCL are told when another one fails, on toy devices."""

import re
import subprocess
import sys
import textwrap

import facula
import facula.distributed as dist
import pytest
import toy_nccl
from facula.distributed import _nccl


@pytest.fixture(scope="module")
def toys(tmp_path_factory):
    return toy_nccl.libraries(tmp_path_factory)


# What a rank does that waits for errors, which may come while it returns from the barrier.
LOOP = """
x = facula.ones(4, device=dev)
work = None
try:
    dist.barrier()
    while True:
        work = dist.all_reduce(x, async_op=True)
        while not work.is_completed():
            time.sleep(0.005)
except dist.DistBackendError as error:
    note(error)
    assert work is None or work.exception() is None or "rank" in str(work.exception())
    dist.destroy_process_group()
"""

# Name -> (what rank 1 does, what the others are told); tools/fault_matrix.py measures when.
FAULTS = {
    "killed": ("os.kill(os.getpid(), signal.SIGKILL)", "rank 1 is lost: its process"),
    "stopped": (
        "os.kill(os.getpid(), signal.SIGSTOP)",
        "rank 1 is lost: its process .* no sign of life for",
    ),
    "an error": ("raise KeyError('lost data')", "rank 1 ended with .*lost data"),
    "a missed call": ("sys.exit()", "rank 1 has left the group"),
    "aborted": ("dist.group.WORLD.abort()", "rank 1 aborted the group"),
    "another size": (
        "dist.all_reduce(facula.ones(5, device=dev), async_op=True); time.sleep(2)",
        r"rank 1: all_reduce\(sum\) float32 \[5\]",
    ),
    "another call": (
        "dist.broadcast(facula.ones(4, device=dev), 1, async_op=True); time.sleep(2)",
        r"rank 1: broadcast\(root 1\)",
    ),
    "a failure of NCCL": (
        "nccl.toy_nccl_fail(6); time.sleep(2)",
        "NCCL: remote process exited",
    ),
    "a message that nobody sends": (
        "dist.irecv(facula.ones(4, device=dev), 0); time.sleep(4)",
        "ranks wait for each other",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_told_to_the_others(toys, fault, tmp_path):
    action, text = FAULTS[fault]
    program = f"make('toy:nccl')\nif rank == 1:\n    dist.barrier()\n    {action}\n    sys.exit()\n"
    ranks = toy_nccl.start(program + LOOP, 3, tmp_path, toys)
    try:
        for rank in (0, 2):
            out, err = ranks.processes[rank].communicate(timeout=30)
            assert ranks.processes[rank].returncode == 0, err
    finally:
        for process in ranks.processes:
            process.kill()
            process.communicate()
    found = toy_nccl.notes(tmp_path, (0, 2))
    for rank in (0, 2):
        assert re.search(text, found[rank][1], re.DOTALL), found[rank][1]


def test_a_failure_of_nccl_is_told_with_the_rank_that_it_is_due_to(toys, tmp_path):
    program = """
    make("toy:nccl")
    x = facula.ones(4, device=dev)
    dist.all_reduce(x)
    dist.barrier()
    if rank == 1:
        time.sleep(0.5)
        os._exit(0)
    nccl.toy_nccl_fail(6)
    time.sleep(1.5)
    try:
        dist.all_reduce(x)
    except dist.DistBackendError as error:
        assert "rank 1" in str(error) and "remote process exited" in str(error), error
    else:
        sys.exit(5)
    """
    for code, _, err in toy_nccl.start(program, 2, tmp_path, toys).end(30)[:1]:
        assert code == 0, err


def test_waiting_for_results_of_a_broken_call_raises(toys, tmp_path):
    program = """
    make("toy:nccl")
    dist.barrier()
    if rank == 1:
        os._exit(0)
    x = facula.ones(4, device=dev)
    dist.all_reduce(x)
    try:
        x.cpu()
        print("no error")
    except facula.AcceleratorError as error:
        assert "rank 1" in str(error), error
    assert x.cpu().tolist() == [1.0] * 4  # told once
    try:
        dist.all_reduce(x)
    except dist.DistBackendError as error:
        print("again", error)
    """
    results = toy_nccl.start(program, 2, tmp_path, toys).end(30)
    code, out, err = results[0]
    assert code == 0, err
    assert out.startswith("again") and "rank 1" in out


def test_a_rank_that_never_comes_is_named_after_the_timeout(toys, tmp_path):
    program = """
    make("toy:nccl", seconds=1)
    dist.barrier()
    if rank == 1:
        time.sleep(4)
        os._exit(0)
    try:
        dist.all_reduce(facula.ones(4, device=dev), async_op=True).wait(timedelta(seconds=10))
    except dist.DistBackendError as error:
        text = str(error)
        assert "waited 1000 ms for all_reduce" in text and "rank 1: waits for nothing" in text, text
    else:
        sys.exit(5)
    """
    results = toy_nccl.start(program, 2, tmp_path, toys).end(30)
    assert results[0][0] == 0, results[0][2]


def test_a_rank_that_makes_no_communicator(toys, tmp_path):
    program = """
    make("toy:nccl", seconds=1)
    if rank == 0:
        try:
            dist.all_reduce(facula.ones(4, device=dev))
        except dist.DistBackendError as error:
            assert "for the other ranks in ncclCommInitRankConfig" in str(error), error
        else:
            sys.exit(5)
    time.sleep(2)
    """
    results = toy_nccl.start(program, 2, tmp_path, toys).end(30)
    assert results[0][0] == 0, results[0][2]


def test_results_of_a_rank_that_has_left_arrive(toys, tmp_path):
    program = """
    make("toy:nccl")
    x = facula.full((4,), float(rank), device=dev)
    dist.barrier()
    if rank == 0:
        toy.toy_hold(0, None)
    dist.broadcast(x, 1)
    if rank == 0:
        time.sleep(1)
        toy.toy_let_go()
        assert x.cpu().tolist() == [1.0] * 4
    dist.destroy_process_group()
    """
    toy_nccl.run(program, 2, tmp_path, toys)


REFUSALS = """
import re
make("cpu:gloo,toy:nccl")
op = dist.ReduceOp
x = facula.ones(4, device=dev)
other = facula.ones(4, device=facula.device("toy", 1 - rank % 2))
half = dist.distributed_c10d._make_nccl_premul_sum(0.5)
dist.all_reduce(x)

def refuse():
    nccl.toy_nccl_refuse(1)
    dist.all_reduce(x)

cases = [
    (lambda: dist.all_reduce(x.to(facula.int32), op.BAND), "expected SUM, AVG, .*got band"),
    (lambda: dist.all_reduce(x.to(facula.int16)), "a dtype that NCCL reduces; got int16"),
    (lambda: dist.all_reduce(x > 0, op.AVG), "expected numbers for AVG; got bool"),
    (lambda: dist.all_reduce(x.to(facula.float8_e5m2), half), "for PREMUL_SUM over NCCL"),
    (lambda: dist.all_reduce(other), "where its communicator is; got one on toy:"),
    (lambda: dist.irecv(x), "expected the rank of a sender, over NCCL"),
    (lambda: dist.all_gather([other, other], x), "expected tensors of one device"),
    (refuse, "all_reduce: invalid argument"),
    (dist.group.WORLD._get_backend("toy").monitored_barrier, "expected a group of the CPU"),
    (lambda: dist.new_group(backend="nccl"), "requires at least one device of an accel.*type cuda"),
    (lambda: dist.group.WORLD._get_backend("cuda"), "No backend type .* device type cuda"),
]
for call, text in cases:
    try:
        call()
    except (RuntimeError, ValueError) as error:
        assert re.search(text, str(error)), error
    else:
        raise AssertionError(text)
dist.all_reduce(x)
dist.monitored_barrier()
assert x.cpu().tolist() == [size ** 2] * 4
"""


def test_what_nccl_does_not_take_is_refused(toys, tmp_path):
    toy_nccl.run(REFUSALS, 2, tmp_path, toys)


# --- without a device

ALONE = """
import facula, facula.distributed as dist
try:
    dist.init_process_group(BACKEND, store=dist.HashStore(), rank=0, world_size=1)
except RuntimeError as error:
    print(error)
assert not dist.is_initialized()
"""


@pytest.mark.parametrize("backend", ["nccl", "cpu:gloo,cuda:nccl"])
def test_without_a_device_the_error_says_so(backend):
    if facula.cuda.is_available():
        pytest.skip("there is a CUDA device")
    command = [sys.executable, "-c", ALONE.replace("BACKEND", repr(backend))]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "the backend nccl requires at least one device of an accelerator" in text


@pytest.mark.parametrize(
    ("library", "text"),
    [("/nowhere/libnccl.so.2", "expected NCCL's library; got .*nowhere"), ("old", "2.14 or later")],
)
def test_a_library_that_cannot_serve(toys, library, text, tmp_path):
    environment = dict(toys)
    if library == "old":
        environment["TOY_NCCL_VERSION"] = "21300"
    else:
        environment["FACULA_NCCL_LIBRARY"] = library
    start = textwrap.dedent(toy_nccl.START).replace(
        'nccl = ctypes.CDLL(os.environ["FACULA_NCCL_LIBRARY"])', ""
    )
    program = """
try:
    make("toy:nccl")
except RuntimeError as error:
    print(error)
"""
    ranks = toy_nccl.Ranks(start + program, 1, tmp_path, init=False, **environment)
    ((code, out, err),) = ranks.end()
    assert code == 0 and re.search(text, out), (out, err)


def test_the_library_that_is_installed():
    if _nccl.library() is None:
        assert not dist.is_nccl_available()
        with pytest.raises(RuntimeError, match="expected NCCL's library"):
            facula.cuda.nccl.version()
        pytest.skip("NCCL's library is not installed")
    assert facula.cuda.nccl.version() >= (2, 14, 0)
    assert dist.is_nccl_available()


def test_options_have_the_names_of_pytorch():
    options = dist.ProcessGroupNCCL.Options()
    assert options.config.min_ctas == -(2**31) and options.backend == "nccl"
    with pytest.raises(AttributeError, match="expected one of"):
        options.config.min_cta = 4
    with pytest.raises(TypeError, match=r"ProcessGroupNCCL.Options as pg_options; got dict"):
        _nccl.options_of({})
    options.split_from = object()
    with pytest.raises(NotImplementedError, match="new_group"):
        _nccl.options_of(options)
