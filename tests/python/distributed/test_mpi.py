"""The engine over MPI, under the mpirun of each MPI that is installed."""

import os
import shutil
import subprocess
import sys
import textwrap
import time

import facula.distributed as dist
import pytest
from facula._C import _distributed
from test_gloo import PROGRAM

LAUNCHERS = {
    "openmpi": (["mpirun.openmpi", "mpirun"], ["--allow-run-as-root", "--oversubscribe"]),
    "mpich": (["mpirun.mpich", "mpiexec.hydra"], []),
}

START = """
import os, signal, sys, time
import facula
import facula.distributed as dist
folder = sys.argv[1]
dist.init_process_group("mpi")
rank, size = dist.get_rank(), dist.get_world_size()
def note(text):
    with open(os.path.join(folder, f"rank{rank}.new"), "w") as f:
        f.write(f"{time.time()} {text}")
    os.rename(f.name, os.path.join(folder, f"rank{rank}"))
"""
# What a rank does that waits for errors.
LOOP = """
x = facula.ones(4)
dist.barrier()
try:
    while True:
        dist.all_reduce(x)
except dist.DistBackendError as error:
    note(error)
"""


@pytest.fixture(params=LAUNCHERS)
def mpi(request):
    """The arguments of a command that starts ranks."""
    names, options = LAUNCHERS[request.param]
    launcher = next(filter(None, map(shutil.which, names)), None)
    if launcher is None or _distributed.why_not(request.param):
        pytest.skip(f"{request.param} is not installed, or was not when this was built")
    return [launcher, *options]


def start(mpi, size, program, folder, **environment):
    text = START + textwrap.dedent(program)
    return subprocess.Popen(
        [*mpi, "-n", str(size), sys.executable, "-c", text, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "FACULA_DISTRIBUTED_HEARTBEAT": "1.5", **environment},
    )


def end(process, timeout=25):
    try:
        out, err = process.communicate(timeout=timeout)
    finally:
        process.kill()
        process.wait()
    return process.returncode, out, err


def notes(folder, ranks):
    """{rank: (time, text)} of what ranks have noted."""
    found = {}
    for rank in ranks:
        when, _, text = (folder / f"rank{rank}").read_text().partition(" ")
        found[rank] = float(when), text
    return found


def runs(process):
    try:
        with open(f"/proc/{process}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("size", [2, 3])
def test_collectives_and_messages(mpi, size, tmp_path):
    code, out, err = end(start(mpi, size, PROGRAM, tmp_path))
    assert code == 0 and out.count("done") == size, (out, err)


def test_large_data_goes_in_order(mpi, tmp_path):
    program = """
    x = facula.arange(3_000_001.0) + rank
    dist.all_reduce(x, dist.ReduceOp.MAX)
    assert x[0] == size - 1 and x[-1] == 3_000_000 + size - 1
    if rank == 0:
        works = [dist.isend(facula.full((100_000,), float(i)), 1) for i in range(3)]
        small = [dist.isend(facula.full((2,), float(i)), 1, tag=3) for i in range(3)]
        [w.wait() for w in works + small]
    else:
        got = [facula.zeros(2) for _ in range(3)]
        works = [dist.irecv(t, tag=3) for t in got]
        [w.wait() for w in works]
        assert [t[1].item() for t in got] == [0, 1, 2], got
        got = [facula.zeros(100_000) for _ in range(3)]
        [w.wait() for w in [dist.irecv(t) for t in got]]
        assert [t[-1].item() for t in got] == [0, 1, 2]
    for _ in range(3):
        dist.destroy_process_group()
        dist.init_process_group("mpi")
        dist.barrier()
    note("well")
    """
    code, _, err = end(start(mpi, 2, program, tmp_path))
    assert code == 0 and [t for _, t in notes(tmp_path, range(2)).values()] == ["well"] * 2, (
        code,
        err,
    )


def test_calls_that_differ_raise_at_all_ranks_with_a_table(mpi, tmp_path):
    program = """
    try:
        dist.all_reduce(facula.ones(4 if rank == 1 else 3))
    except dist.DistBackendError as error:
        note(error)
    """
    _, _, err = end(start(mpi, 3, program, tmp_path))
    texts = [t for _, t in notes(tmp_path, range(3)).values()]
    assert len(set(texts)) == 1, (texts, err)
    for part in ("number 1", "rank 0: all_reduce(sum) float32 [3]", "float32 [4]"):
        assert part in texts[0]


def test_an_error_of_one_rank_is_told_to_the_others(mpi, tmp_path):
    program = "if rank == 1: dist.barrier(); raise KeyError('lost data')\n" + LOOP
    code, _, err = end(start(mpi, 3, program, tmp_path))
    assert code != 0 and "KeyError: 'lost data'" in err
    for _, text in notes(tmp_path, (0, 2)).values():
        assert "rank 1 ended with an error" in text and "KeyError: 'lost data'" in text


def test_a_missed_call_raises_when_the_rank_leaves(mpi, tmp_path):
    program = "if rank == 1: dist.barrier(); sys.exit()\n" + LOOP
    _, _, err = end(start(mpi, 2, program, tmp_path))
    assert (tmp_path / "rank0").exists(), err
    assert "rank 1 has left the group" in notes(tmp_path, [0])[0][1]


def test_a_stopped_process_is_named(mpi, tmp_path):
    program = """
    if rank == 1:
        dist.barrier()
        note("stops")
        os.kill(os.getpid(), signal.SIGSTOP)
    """
    end(start(mpi, 3, program + textwrap.indent(LOOP, "    "), tmp_path))
    found = notes(tmp_path, range(3))
    for rank in (0, 2):
        assert "rank 1 is lost: it has given no sign of life for 1." in found[rank][1]
        assert found[rank][0] - found[1][0] < 3.5


def test_a_killed_process_ends_the_job(mpi, tmp_path):
    program = """
    note(os.getpid())
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    while True:
        dist.barrier()
    """
    began = time.monotonic()
    code, out, err = end(start(mpi, 3, program, tmp_path))
    assert code != 0 and "signal 9" in out + err
    while any(runs(int(process)) for _, process in notes(tmp_path, (0, 2)).values()):
        assert time.monotonic() - began < 15
        time.sleep(0.05)


def test_one_process_without_mpirun_is_a_world_of_one(mpi, tmp_path):
    engine = "mpich" if "mpich" in mpi[0] or "hydra" in mpi[0] else "openmpi"
    command = [sys.executable, "-c", START + "dist.barrier()\nnote(size)", str(tmp_path)]
    subprocess.run(command, check=True, env={**os.environ, "FACULA_DISTRIBUTED_MPI": engine})
    assert notes(tmp_path, [0])[0][1] == "1"


def test_an_mpi_that_does_not_exist_is_an_error(monkeypatch):
    monkeypatch.setenv("FACULA_DISTRIBUTED_MPI", "quadrics")
    with pytest.raises(ValueError, match="expected one of .*openmpi.*; got 'quadrics'"):
        dist.init_process_group("mpi")
    assert not dist.is_initialized()
