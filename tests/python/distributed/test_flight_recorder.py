"""Records of calls that other processes read, the monitor, and progress over ranks."""

import io
import json
import os
import pickle

import facula
import facula.distributed as dist
import pytest
from facula.distributed import flight_recorder, monitor, threads
from facula.distributed.flight_recorder import __main__ as command
from facula.distributed.flight_recorder._memory import Call, Process, read_file

from .ranks import Ranks, outputs

ones = facula.ones


def calls_of(rank_function, ranks=2):
    """What the flight recorder notes while threads are ranks."""
    before = flight_recorder.read_own().made
    threads.run(rank_function, ranks)
    return [c for c in flight_recorder.read_own().calls if c.number > before]


def test_calls_are_noted_with_what_where_and_when():
    def work(rank):
        dist.all_reduce(ones(2, 3), dist.ReduceOp.MAX)
        dist.broadcast(ones(4).long(), 1)
        dist.all_reduce(ones(5), async_op=True).wait()
        if rank == 0:
            dist.send(ones(7), 1)
        else:
            dist.recv(ones(7), 0)

    found = calls_of(work)
    assert sorted((c.rank, c.text, c.sequence, c.is_async, c.nbytes) for c in found) == [
        (0, "all_reduce(max) float32 [2, 3]", 1, False, 24),
        (0, "all_reduce(sum) float32 [5]", 3, True, 20),
        (0, "broadcast(root 1) int64 [4]", 2, False, 32),
        (0, "send(rank 1) float32 [7]", 0, False, 28),
        (1, "all_reduce(max) float32 [2, 3]", 1, False, 24),
        (1, "all_reduce(sum) float32 [5]", 3, True, 20),
        (1, "broadcast(root 1) int64 [4]", 2, False, 32),
        (1, "recv(rank 0) float32 [7]", 0, False, 28),
    ]
    for call in found:
        assert call.state == "completed" and call.size == 2
        assert 0 < call.scheduled_ns <= call.started_ns <= call.ended_ns
        assert "test_flight_recorder.py:" in call.place


def test_calls_that_fail_are_noted_as_failed():
    def work(rank):
        with pytest.raises(dist.DistBackendError):
            dist.all_reduce(ones(2 + rank))

    assert [c.state for c in calls_of(work)] == ["failed", "failed"]


def test_a_rank_that_hangs_is_read_from_outside(tmp_path):
    program = """
    from facula.distributed import flight_recorder, monitor
    from facula.distributed.flight_recorder.__main__ import main
    dist.barrier()
    if rank == 0:
        def others():
            found = flight_recorder.find()
            return [p for p in found if p.job == flight_recorder.read_own().job]
        end = time.monotonic() + 60
        while not any(c.is_open and c.name == "all_reduce" for p in others() for c in p.calls):
            assert time.monotonic() < end
            time.sleep(0.02)
        found = others()
        (waiting,) = flight_recorder.waiting(found).values()
        print(len(found), [(r, c.text, awaited) for r, c, awaited in waiting])
        hung = next(p.pid for p in found if p.pid != os.getpid())
        rows = monitor.rows(found, 1.0, time.monotonic_ns())
        print([(r.rank, r.does.split(" since")[0], r.does[-1]) for r in rows][1:])
        assert main([str(hung), "-n", "1"]) == 0
    dist.all_reduce(facula.ones(3))
    """
    # A name of their own: other children of this process may not have ended yet.
    name = {"MASTER_ADDR": "localhost", "MASTER_PORT": f"{os.getpid() % 60000 + 1}"}
    lines = outputs(program, 2, tmp_path, **name)[0].splitlines()
    assert lines[0] == "2 [(1, 'all_reduce(sum) float32 [3]', [0])]"
    assert lines[1] == "[(1, 'all_reduce(sum) float32 [3]', '0')]"
    assert "all_reduce(sum) float32 [3]" in lines[3] and "started" in lines[3]
    assert "nobody who has not come" in lines[-1]


def test_the_memory_keeps_the_last_calls(tmp_path):
    program = """
    from facula.distributed import flight_recorder
    for n in range(7):
        dist.all_reduce(facula.ones(n + 1))
    own = flight_recorder.read_own()
    print(own and (own.made, [c.shape for c in own.calls]))
    child = os.fork()
    if not child:
        print("child", len(flight_recorder.read_own().calls) if own else None, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    """
    for records, shown in (("4", "(7, [(4,), (5,), (6,), (7,)])"), ("0", "None")):
        ((_, out, _),) = Ranks(program, 1, tmp_path, FACULA_DISTRIBUTED_RECORDS=records).end()
        assert out.splitlines()[-1] == shown or shown in out
        assert ("child 0" if records == "4" else "child None") in out
    ((_, _, error),) = Ranks("", 1, tmp_path, FACULA_DISTRIBUTED_RECORDS="many").end()
    assert "FACULA_DISTRIBUTED_RECORDS: expected a number" in error


def test_steps_of_optimizers_are_counted():
    def work(rank):
        optimizer = facula.optim.SGD([facula.nn.Parameter(ones(1))], lr=1.0)
        for _ in range(3):
            optimizer.step()

    before = flight_recorder.read_own().steps
    threads.run(work, 1)
    assert flight_recorder.read_own().steps == before + 3


def test_the_form_of_pytorchs_tools(tmp_path):
    calls_of(lambda rank: dist.all_reduce(ones(2)))
    flight_recorder.dump(tmp_path / "records.json")
    with open(tmp_path / "records.json") as file:
        found = json.load(file)
    flight_recorder.dump(tmp_path / "records")
    with open(tmp_path / "records", "rb") as file:
        assert pickle.load(file)["entries"] == found["entries"]
    assert found["entries"][-1]["profiling_name"] == "gloo:all_reduce"
    assert found["entries"][-1]["frames"][0]["line"] > 0
    assert found["pg_status"]["0"]["last_completed_collective"] >= 1


def test_wrong_arguments_of_the_commands(capsys, tmp_path):
    assert command.main(["999999999"]) == 2
    assert command.main([str(os.getpid()), "-n", "0"]) == 2
    assert command.main(["1"]) == 2  # of another user, or without records
    errors = capsys.readouterr().err.splitlines()
    assert "expected a process that runs; got 999999999" in errors[0]
    assert "at least 1; got 0" in errors[1]
    for main, words in ((monitor.main, ["-i", "0"]), (command.main, ["x"])):
        with pytest.raises(SystemExit):
            main(words)
    (tmp_path / "short").write_bytes(b"FACULAFR")
    (tmp_path / "other").write_bytes(b"x" * 8192)
    for name in ("short", "other"):
        with open(tmp_path / name, "rb") as file, pytest.raises(ValueError, match="expected a fl"):
            read_file(file.fileno(), 7)


def call(rank, sequence, state="completed", at=1_000_000_000, took=10_000_000):
    ended = at + took if state == "completed" else 0
    return Call(
        sequence, state, at, at, ended, 4_000_000, rank, 2, "0", "all_reduce", "sum", "float32",
        (1_000_000,), sequence, -1, 0, False, "train.py:3",
    )  # fmt: skip


def test_the_monitors_table():
    processes = [
        Process(10, 0, 2, 5, 0, 20_000_000, 0, 0, "job", [call(0, 1), call(0, 2, "started")]),
        Process(11, 0, 1, 5, 0, 30_000_000, 0, 0, "job", [call(1, 1)]),
    ]
    text = monitor.table(monitor.rows(processes, 2.0, 1_500_000_000))
    assert text.splitlines() == [
        "job",
        "rank  process  step  ms a step  calls/s  MB/s  does",
        "   0       10     5       20.0        0   2.0  "
        "all_reduce(sum) float32 [1000000] since 500.0 ms; waits for 1",
        "   1       11     5       30.0        0   2.0  computes since 490.0 ms",
    ]
    assert monitor.main(["--once"]) == 0


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_draws_one_line_on_a_terminal_and_lines_elsewhere(monkeypatch):
    terminal, file = Terminal(), io.StringIO()
    assert list(dist.progress(iter("ab"), file=terminal)) == ["a", "b"]
    assert terminal.getvalue().startswith("\r\033[K2/?, ") and terminal.getvalue().count("\n") == 1
    assert sum(dist.progress(range(4), "sum", file=file)) == 6
    assert file.getvalue().startswith("sum: 4/4, ")
    assert len(dist.progress([1, 2])) == 2
    nothing = io.StringIO()
    with pytest.raises(TypeError):
        list(dist.progress(3, file=nothing))
    assert nothing.getvalue() == ""
    with pytest.raises(TypeError, match="total"):
        len(dist.progress(iter([])))
    with pytest.raises(KeyError):
        for _ in dist.progress([1], file=file):
            raise KeyError
    monkeypatch.setenv("LOCAL_RANK", "1")
    quiet = io.StringIO()
    list(dist.progress([1, 2], file=quiet))
    assert quiet.getvalue() == ""
