"""`python -m bench.engines`: GB a second of facula over Gloo and MPI, and of these alone.

The programs that use the engines alone are compiled here; an engine whose headers are not installed
is left out. Processes of the other sides sleep while one is timed.
"""

import argparse
import os
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.distributed import size_text

HERE = Path(__file__).parent
CALLS = [(call, n) for call in ("all_reduce", "broadcast") for n in (1 << 8, 1 << 14, 1 << 22)]
SECONDS_A_ROUND = 0.15


def compiled(name, compiler, libraries, folder):
    """The program made from NAME_calls.cpp; None, with the reason printed, where it cannot be."""
    program = Path(folder, f"{name}_calls")
    source = str(HERE / f"{name}_calls.cpp")
    if shutil.which(compiler) is None:
        print(f"{name}: left out, {compiler} was not found")
        return None
    command = [compiler, "-O2", "-std=c++20", "-o", str(program), source, *libraries]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"{name}: left out, {source} does not compile:\n{done.stderr.strip()[:500]}")
        return None
    return [str(program)]


class Side:
    """The ranks of one side, started, and their pipes."""

    def __init__(self, label, commands, ranks, environment):
        self.label = label
        self.folder = tempfile.mkdtemp(prefix="facula-engines-")
        pipes = [Path(self.folder, f"rank{r}") for r in range(ranks)]
        for pipe in [*pipes, Path(self.folder, "seconds")]:
            os.mkfifo(pipe)
        self.processes = [
            subprocess.Popen(
                [word.replace("FOLDER", self.folder) for word in command],
                env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
                stdin=subprocess.DEVNULL,
            )
            for command in commands
        ]
        # Opened for both ways, so that neither end waits for the other.
        self.lines = [os.open(pipe, os.O_RDWR) for pipe in pipes]
        self.answers = os.open(Path(self.folder, "seconds"), os.O_RDWR)

    def seconds(self, call, n, repetitions):
        """The time of a call, of so many."""
        for pipe in self.lines:
            os.write(pipe, f"{call} {n} {repetitions}\n".encode())
        while not select.select([self.answers], [], [], 1)[0]:
            if any(process.poll() is not None for process in self.processes):
                raise RuntimeError(f"{self.label}: the ranks ended in {call} of {n} floats")
        return float(os.read(self.answers, 100))

    def end(self):
        """Lets the ranks end; removes the pipes."""
        for pipe in [*self.lines, self.answers]:
            os.close(pipe)
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        shutil.rmtree(self.folder)


def commands_of(engine, alone, ranks):
    """What starts the ranks of an engine alone and of facula over it."""
    calls = [sys.executable, str(HERE / "calls.py"), engine]
    if engine == "mpi":
        run = ["mpirun", "--oversubscribe", "--allow-run-as-root", "-n", str(ranks)]
        return [[*run, *alone, "FOLDER"]], [[*run, *calls, "0", str(ranks), "FOLDER"]]
    each = [[str(r), str(ranks), "FOLDER"] for r in range(ranks)]
    return [[*alone, *rank] for rank in each], [[*calls, *rank] for rank in each]


def repetitions(seconds):
    """How many calls of this time make a turn."""
    return max(3, min(5000, int(SECONDS_A_ROUND / max(seconds, 1e-6))))


def compare(engine, alone, ranks, rounds):
    """Prints a row for each call: bandwidth of both sides, and their ratio."""
    own, ours = commands_of(engine, alone, ranks)
    sides = [
        Side(f"{engine} alone", own, ranks, {}),
        Side(f"facula over {engine}", ours, ranks, {"FACULA_DISTRIBUTED_ENGINE": engine}),
    ]
    try:
        for call, n in CALLS:
            took = [[] for _ in sides]
            counts = [repetitions(side.seconds(call, n, 3)) for side in sides]
            for _ in range(rounds):
                for times, side, count in zip(took, sides, counts, strict=True):
                    times.append(side.seconds(call, n, count))
            alone_s, facula_s = (statistics.median(times) for times in took)
            gb = 4 * n / 1e9
            print(
                f"{engine:<6}{call:<12}{size_text(n):>8}{gb / alone_s:>12.3f}{gb / facula_s:>12.3f}"
                f"{alone_s / facula_s:>9.2f}x",
                flush=True,
            )
    finally:
        for side in sides:
            side.end()


def main():
    parser = argparse.ArgumentParser(prog="python -m bench.engines", description=__doc__)
    parser.add_argument("--ranks", type=int, default=2, help="processes of each side (default 2)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each side (default 5)")
    args = parser.parse_args()
    print(f"{'':<6}{'GB/s':<12}{'size':>8}{'alone':>12}{'facula':>12}{'ratio':>10}")
    with tempfile.TemporaryDirectory() as folder:
        for engine, compiler, libraries in (
            ("gloo", "g++", ["-lgloo", "-lpthread"]),
            ("mpi", "mpicxx.openmpi", []),
        ):
            alone = compiled(engine, compiler, libraries, folder)
            if alone:
                compare(engine, alone, args.ranks, args.rounds)


if __name__ == "__main__":
    main()
