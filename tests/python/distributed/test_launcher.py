"""torchrun: ranks, their output, failures, restarts and signals; nothing is left behind."""

import operator
import os
import signal
import subprocess
import sys
import time

import facula.distributed as dist
import pytest
from facula.distributed import run
from facula.distributed.elastic.multiprocessing import Std, start_processes, to_map
from facula.distributed.elastic.multiprocessing.errors import ChildFailedError
from facula.distributed.launcher import LaunchConfig, elastic_launch

# What the ranks run needs no facula, so that starting them takes no time.
SHOW = "import os; print(os.environ['RANK'], os.environ['WORLD_SIZE'], flush=True)"


def torchrun(folder, program, *options, size=2, **environment):
    script = folder / "script.py"
    script.write_text(program)
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "facula.distributed.run",
            f"--nproc-per-node={size}",
            *options,
            script,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment, "TMPDIR": str(folder)},
    )


def end_of(launcher):
    out, err = launcher.communicate(timeout=30)
    return launcher.returncode, out, err


def test_ranks_know_their_number(tmp_path):
    code, out, err = end_of(torchrun(tmp_path, SHOW, "--standalone", size=3))
    assert code == 0, err
    assert sorted(out.splitlines()) == ["0 3", "1 3", "2 3"]
    assert [p.name for p in tmp_path.iterdir()] == ["script.py"]


def test_lines_of_ranks_are_whole(tmp_path):
    program = "for i in range(200): print('a' * 50, end=''); print('b' * 50)"
    logs = tmp_path / "logs"
    code, out, err = end_of(
        torchrun(tmp_path, program, "--standalone", "-t=1", "--log-dir", str(logs))
    )
    assert code == 0, err
    line = "a" * 50 + "b" * 50
    assert sorted(out.splitlines()) == sorted([f"[default{r}]:{line}" for r in range(2)] * 200)
    files = sorted(logs.glob("*/attempt_0/*/stdout.log"))
    assert [f.read_text() for f in files] == [f"{line}\n" * 200] * 2


def test_the_ranks_that_write_can_be_chosen(tmp_path):
    options = ("--standalone", "--local-ranks-filter=1", "--log-dir", str(tmp_path / "logs"))
    assert end_of(torchrun(tmp_path, SHOW, *options))[1] == "1 2\n"


FAIL = """
import os, sys, time
if os.environ["RANK"] == "1":
    raise ValueError("bad luck")
print(os.getpid(), flush=True)
time.sleep(60)
"""


def gone(pid):
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().split()[2] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


def test_the_first_failure_is_named_and_ends_the_others(tmp_path):
    begin = time.monotonic()
    code, out, err = end_of(torchrun(tmp_path, FAIL, "--standalone", "-t=2"))
    assert code == 1 and time.monotonic() - begin < 20
    assert "rank      : 1 (local_rank: 1)" in err and "exitcode  : 1" in err
    assert err.count("ValueError: bad luck") == 2 and gone(int(out or 0))


RECORDED = """
from facula.distributed.elastic.multiprocessing.errors import record
@record
def main():
    raise ValueError("bad luck")
main()
"""


def test_recorded_errors_are_shown(tmp_path):
    code, _, err = end_of(torchrun(tmp_path, RECORDED, "--standalone", "-r=2", size=1))
    assert code == 1 and "traceback : Traceback" in err and "ValueError: bad luck" in err


def test_ranks_are_started_again(tmp_path):
    program = """
import os
attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
print(os.environ["RANK"], attempt, flush=True)
if attempt < "2": os._exit(3)
"""
    code, out, err = end_of(torchrun(tmp_path, program, "--standalone", "--max-restarts=2"))
    assert code == 0, err
    assert {"0 2", "1 2"} <= set(out.splitlines())
    code, _, err = end_of(torchrun(tmp_path, program, "--standalone", "--max-restarts=1"))
    assert code == 1 and "exitcode  : 3" in err


SLEEP = """
import os, subprocess, sys, time
helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(os.getpid(), helper.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all(sig, tmp_path):
    launcher = torchrun(tmp_path, SLEEP, "--standalone")
    pids = [int(p) for _ in range(2) for p in launcher.stdout.readline().split()]
    launcher.send_signal(sig)
    code, _, err = end_of(launcher)
    assert code == 128 + sig and f"got signal {sig.name}" in err
    assert all(gone(p) for p in pids)


def test_ranks_end_with_a_launcher_that_is_killed(tmp_path):
    program = SLEEP.replace('time.sleep(60)"', 'time.sleep(0)"')
    launcher = torchrun(tmp_path, program, "--standalone")
    ranks = [int(launcher.stdout.readline().split()[0]) for _ in range(2)]
    launcher.kill()
    assert all(gone(p) for p in ranks)
    launcher.communicate()


def free_port():
    return dist.TCPStore("localhost", 0, is_master=True).port


@pytest.mark.parametrize("backend", ["c10d", "static"])
def test_two_machines(backend, tmp_path):
    port = free_port()
    launchers = []
    for node in range(2):
        options = {
            "c10d": ("--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{port}", "--rdzv-id=7"),
            "static": (f"--node-rank={node}", "--master-addr=localhost", f"--master-port={port}"),
        }[backend]
        (tmp_path / str(node)).mkdir()
        launchers.append(torchrun(tmp_path / str(node), SHOW, "--nnodes=2", *options))
    results = [end_of(launcher) for launcher in launchers]
    assert [code for code, _, _ in results] == [0, 0], results
    assert sorted("".join(out for _, out, _ in results).split("\n")[:-1]) == [
        "0 4",
        "1 4",
        "2 4",
        "3 4",
    ]


def test_programs_of_other_kinds(tmp_path):
    command = [sys.executable, "-m", "facula.distributed.launch", "--standalone"]
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    end = [["--no-python", "sh", "-c", "echo $RANK"], ["-m", "this"]]
    found = [subprocess.check_output(command + e, text=True, env=env) for e in end]
    assert found[0] == "0\n" and "Zen" in found[1]


def test_functions():
    config = LaunchConfig(1, 1, 2, max_restarts=0, rdzv_configs={"timeout": 20})
    assert elastic_launch(config, operator.add)(2, 3) == {0: 5, 1: 5}
    with pytest.raises(ChildFailedError, match="ZeroDivisionError") as caught:
        elastic_launch(config, operator.floordiv)(1, 0)
    assert set(caught.value.failures) <= {0, 1}


def test_start_processes():
    context = start_processes("trainer", "echo", {0: ("a",), 1: ("b",)}, {0: {}, 1: {}})
    assert not context.wait(20).is_failed() and len(context.pids()) == 2
    with pytest.raises(RuntimeError, match="local ranks"):
        start_processes("trainer", "echo", {0: ()}, {1: {}})


def test_streams_are_read():
    assert Std.from_str("3") == Std.ALL and Std.from_str("0:1,1:2") == {0: Std.OUT, 1: Std.ERR}
    assert to_map({1: Std.OUT}, 2) == {0: Std.NONE, 1: Std.OUT}
    for text in ("4", "a", "0:5", "x:1"):
        with pytest.raises(ValueError, match="expected"):
            Std.from_str(text)


@pytest.mark.parametrize(
    "options, error, text",
    [
        (["--nnodes=a"], RuntimeError, "--nnodes"),
        (["--nnodes=1:2:3"], RuntimeError, "--nnodes"),
        (["--nproc-per-node=0"], ValueError, "--nproc-per-node"),
        (["--nproc-per-node=many"], ValueError, "many"),
        (["--rdzv-backend=etcd"], ValueError, "etcd"),
        (["--rdzv-conf=a"], ValueError, "KEY=VALUE"),
        (["--nnodes=3:2"], ValueError, "min_nodes"),
    ],
)
def test_options_that_mean_nothing(options, error, text):
    with pytest.raises(error, match=text):
        run.config_from_args(run.parse_args([*options, "script.py"]))


def test_both_spellings(monkeypatch):
    args = run.parse_args(["--nproc_per_node", "2", "--max-restarts", "4", "s.py", "--nnodes", "9"])
    assert (args.nproc_per_node, args.max_restarts, args.nnodes) == ("2", 4, "1:1")
    assert args.training_script_args == ["--nnodes", "9"]
    monkeypatch.setenv("PET_NNODES", "3")
    assert run.parse_args(["s.py"]).nnodes == "3"


@pytest.mark.parametrize("beside_pytorch", [False, True])
@pytest.mark.parametrize("command", ["facula_torchrun", "torchrun"])
def test_commands_of_an_installed_facula(command, beside_pytorch, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import torch; print(torch.__file__, flush=True)")
    if beside_pytorch:
        launcher = tmp_path / "torch" / "distributed" / "run.py"
        launcher.parent.mkdir(parents=True)
        launcher.write_text("print('the launcher of PyTorch')")
        for package in (launcher.parent, launcher.parent.parent):
            (package / "__init__.py").touch()
    entry = f"import sys; from facula._torchrun import {command}; sys.exit({command}())"
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    found = subprocess.run(
        [sys.executable, "-c", entry, "--standalone", "--nproc-per-node=2", script],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(tmp_path), *paths]))},
        timeout=60,
    )
    assert found.returncode == 0, found.stderr
    if beside_pytorch and command == "torchrun":
        assert found.stdout == "the launcher of PyTorch\n"
    else:
        first, second = found.stdout.splitlines()
        assert first == second and "facula" in first
