#!/usr/bin/env python3
"""What the ranks of a group are told when one fails, for each engine: the table of distributed.md.

    PYTHONPATH=build/release/python .venv/bin/python tools/fault_matrix.py [--write] [--only TEXT]

In each case three ranks call collectives, or save a checkpoint, and rank 1 does something wrong.
Measured is the time until the last of the others has an error. Afterwards processes, shared memory
and files that the case has left are counted. The limit for signs of life is set to two seconds.
NCCL is the library that stands in for it, on toy devices (tests/cpp/plugins; a build with --tests
has them).
"""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from console import ROOT, run_main, say

PAGE = ROOT / "docs/internals/distributed.md"
BEGIN, END = "<!-- tools/fault_matrix.py -->\n", "<!-- end -->\n"
SIZE, MARK = 3, "FACULA_FAULT_MATRIX"

PROGRAM = """
import os, resource, signal, sys, time
import facula
import facula.distributed as dist
from facula.distributed import checkpoint, threads

folder, fault, engine = sys.argv[1:4]
device = "cpu"

def note(name, text=""):
    with open(os.path.join(folder, name + ".new"), "w") as f:
        f.write(f"{time.time()} {text}")
    os.rename(f.name, os.path.join(folder, name))

def fail(rank, x):
    if fault == "kill -9":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "SIGSTOP":
        os.kill(os.getpid(), signal.SIGSTOP)
    if fault == "exception":
        raise KeyError("lost data")
    if fault == "wrong shape":
        dist.all_reduce(facula.ones(5, device=device))
    if fault == "wrong order":
        dist.broadcast(x, 0)
    if fault == "missed call, waits elsewhere":
        dist.recv(x, 0)

def save_checkpoint(rank):
    if rank == 1:
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
        note("fault")
    dist.barrier()
    weights = facula.zeros(100_000, device=device)
    try:
        checkpoint.save({f"w{rank}": weights}, checkpoint_id=folder + "/checkpoint")
    except checkpoint.CheckpointException as error:
        note(f"told{rank}", error)

def work(rank):
    x = facula.ones(4, device=device)
    for _ in range(5):
        dist.all_reduce(x, dist.ReduceOp.MAX)
    if fault == "full disk in a checkpoint":
        return save_checkpoint(rank)
    if rank == 1 and fault != "network cut":
        note("fault")
        if fault == "missed call, ends":
            return
        try:
            return fail(rank, x)
        except dist.DistBackendError:
            return
    note(f"ready{rank}")
    try:
        while True:
            dist.all_reduce(x, dist.ReduceOp.MAX)
    except dist.DistBackendError as error:
        note(f"told{rank}", error)

if engine == "threads":
    try:
        threads.run(work, 3)
    except KeyError:
        pass
elif engine in ("OpenMPI", "MPICH"):
    dist.init_process_group("mpi")
    work(dist.get_rank())
elif engine == "NCCL":
    import ctypes
    ctypes.CDLL(os.environ["TOY_DEVICE"], mode=ctypes.RTLD_GLOBAL)
    rank, device = int(sys.argv[4]), "toy"
    dist.init_process_group(
        "toy:nccl", init_method=f"file://{folder}/store", rank=rank, world_size=3
    )
    work(rank)
else:
    rank = int(sys.argv[4])
    dist.init_process_group(init_method=f"file://{folder}/store", rank=rank, world_size=3)
    work(rank)
"""

FAULTS = [
    "kill -9",
    "SIGSTOP",
    "exception",
    "wrong shape",
    "wrong order",
    "missed call, ends",
    "missed call, waits elsewhere",
    "network cut",
    "full disk in a checkpoint",
]
ENGINES = ["local", "threads", "Gloo", "OpenMPI", "MPICH", "NCCL"]
PLUGINS = ROOT / "build/release/plugins"
LAUNCHERS = {
    "OpenMPI": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"],
    "MPICH": ["mpirun.mpich"],
}
# Why there is nothing to measure.
REASONS = {
    ("kill -9", "threads"): "one process",
    ("SIGSTOP", "threads"): "one process",
    ("network cut", "local"): "no network",
    ("network cut", "threads"): "no network",
    ("network cut", "OpenMPI"): "MPI's own",
    ("network cut", "MPICH"): "MPI's own",
}


def processes_of(case):
    """Ids of the living processes that a case has started."""
    wanted, found = f"{MARK}={case}".encode(), []
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError, IndexError):
            if entry.isdigit() and wanted in Path(f"/proc/{entry}/environ").read_bytes():
                state = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[0]
                if state not in "ZX":
                    found.append(int(entry))
    return found


def files_now():
    """Files of shared memory, and temporary ones."""
    return {
        str(p) for folder in ("/dev/shm", tempfile.gettempdir()) for p in Path(folder).iterdir()
    }


def commands(engine, fault, folder, net):
    """What is started for a case."""
    program = [sys.executable, "-c", PROGRAM, folder, fault, engine]
    if engine == "threads":
        return [program]
    if engine in LAUNCHERS:
        return [[*LAUNCHERS[engine], "-n", str(SIZE), *program]]
    prefix = net.prefix if net else lambda rank: []
    return [[*prefix(rank), *program, str(rank)] for rank in range(SIZE)]


def told(folder):
    """Times and texts of the ranks that were told."""
    return [p.read_text().split(" ", 1) for p in Path(folder).glob("told?")]


def network_of(fault):
    """A network that can be cut, where one is needed."""
    if fault != "network cut":
        return contextlib.nullcontext()
    sys.path.insert(0, str(ROOT / "tests/python/distributed"))
    from network import Network

    return Network(SIZE)


def wait_for(names, folder, started, seconds):
    """Wait until there are files of these names, or all processes have ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not all((Path(folder) / n).exists() for n in names):
        if all(p.poll() is not None for p in started):
            return
        time.sleep(0.01)


def run_case(engine, fault):
    """Runs a case: (seconds until the others were told, a text, what is left)."""
    case, before = f"{os.getpid()}:{engine}:{fault}", files_now()
    folder = tempfile.mkdtemp()
    environment = {**os.environ, MARK: case, "FACULA_DISTRIBUTED_HEARTBEAT": "2"}
    if engine == "Gloo" or (engine == "NCCL" and fault == "network cut"):
        environment["FACULA_DISTRIBUTED_ENGINE"] = "gloo"
    if engine == "NCCL":
        environment["TOY_DEVICE"] = str(PLUGINS / "toy_device.so")
        environment["FACULA_NCCL_LIBRARY"] = str(PLUGINS / "toy_nccl.so")
        environment["TORCH_NCCL_BLOCKING_WAIT"] = "1"
    with network_of(fault) as net:
        if net:
            environment["GLOO_SOCKET_IFNAME"] = net.interface
        quiet = subprocess.DEVNULL
        started = [
            subprocess.Popen(c, env=environment, stdout=quiet, stderr=quiet)
            for c in commands(engine, fault, folder, net)
        ]
        if net:
            wait_for([f"ready{r}" for r in range(SIZE)], folder, started, 20)
            net.cut(1)
            (Path(folder) / "fault").write_text(str(time.time()))
        wait_for(["fault", "told0", "told2"], folder, started, 15)
        ended = end_all(started)
    stopped = fault == "SIGSTOP"
    began = float((Path(folder) / "fault").read_text().split()[0])
    found = told(folder)
    left = what_is_left(case, before, stopped, Path(folder) / "checkpoint")
    shutil.rmtree(folder)
    seconds = max((float(when) for when, _ in found), default=ended) - began
    return seconds, found[0][1] if found else "", left


def end_all(started):
    """Waits for what was started, a stopped process aside; the time when the last has ended."""
    end = time.monotonic() + 8
    while any(p.poll() is None for p in started) and time.monotonic() < end:
        time.sleep(0.02)
    return time.time()


def what_is_left(case, before, stopped, checkpoint):
    """What a case has left behind beside a process that was stopped, as text; it is removed."""
    time.sleep(0.3)
    processes = processes_of(case)
    for process in processes:
        os.kill(process, signal.SIGKILL)
    files = sorted(files_now() - before)
    parts = []
    if processes:
        parts = ["the stopped process" if stopped else f"{len(processes)} processes"]
    parts += [Path(f).name for f in files if "facula" in f or "ompi" in f or "mpich" in f]
    parts += [p.name for p in checkpoint.glob("*")]
    return ", ".join(parts)


def in_short(text):
    """What an error says has happened, short enough for a table."""
    if not text:
        return ""
    first, *more = text.strip().splitlines()
    if "expected the same call" in first:
        return first.partition(": ")[2] + " (a line for each rank)"
    if first.startswith("CheckpointException"):
        return f"{first} ... {more[-1].strip()}"
    if "wait for each other" in first:
        return f"{first} (a line for each wait)"
    said = first.split("; ")[-1]
    return f"{said} {more[-1].strip()}" if said.endswith(":") else said


def table(only):
    """The lines of the table."""
    lines = [
        f"| fault | {' | '.join(ENGINES)} | what the others are told | left behind |\n",
        f"|---|{'---|' * (len(ENGINES) + 2)}\n",
    ]
    for fault in FAULTS:
        if only not in fault:
            continue
        cells, texts, left = [], [], []
        for engine in ENGINES:
            if (fault, engine) in REASONS:
                cells.append(REASONS[fault, engine])
                continue
            seconds, text, remains = run_case(engine, fault)
            say(
                f"{fault}, {engine}: {seconds:.2f} s, {in_short(text) or 'MPI ended all'} {remains}"
            )
            cells.append(f"{seconds:.2f} s" if text else f"{seconds:.2f} s (ended)")
            texts += [in_short(text)] if text else []
            left += [f"{engine}: {remains}"] if remains else []
        told_text = f"`{texts[0]}`" if texts else "nothing"
        lines.append(
            f"| {fault} | {' | '.join(cells)} | {told_text} | {'; '.join(left) or 'nothing'} |\n"
        )
    return lines


def main():
    """Prints the table, or writes it into its page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the table into its page")
    parser.add_argument("--only", default="", help="only faults that contain this text")
    options = parser.parse_args()
    lines = table(options.only)
    print("".join(lines))
    if options.write:
        text = PAGE.read_text()
        begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
        PAGE.write_text(text[:begin] + "".join(lines) + text[end:])


if __name__ == "__main__":
    run_main(main)
