"""Memory of loaders: a small /dev/shm, processes killed in the middle, many epochs."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# 30 batches of 16 MB, 8 of them held at once: more than twice what /dev/shm has.
SMALL_SHM = """
import os
import facula
import facula.multiprocessing as mp
from facula.utils import data

class Large(data.Dataset):
    def __len__(self):
        return 30
    def __getitem__(self, i):
        return facula.full((4_000_000,), float(i))

room = os.statvfs("/dev/shm")
assert room.f_frsize * room.f_blocks == 64 << 20, room
held = []
for i, batch in enumerate(data.DataLoader(Large(), batch_size=None, num_workers=2)):
    assert batch[0].item() == batch[-1].item() == i
    held = [*held[-7:], batch]
tensors = [facula.ones(4_000_000).share_memory_() for _ in range(8)]
assert all(t.sum() == 4_000_000 for t in tensors)
mp.set_sharing_strategy("file_system")
try:
    full = [facula.ones(4_000_000).share_memory_() for _ in range(8)]
except RuntimeError as error:
    print("refused:", error)
print("done")
"""


def _in_small_shm(code):
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    mount = "mount -t tmpfs -o size=64m tmpfs /dev/shm"
    begin = ["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-m", "sh", "-c"]
    if subprocess.run([*begin, mount], capture_output=True).returncode:
        pytest.skip("this system lets nobody mount in a namespace")
    done = subprocess.run(
        [*begin, f'{mount} && exec "$0" -W ignore -c "$1"', sys.executable, code],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_batches_need_no_room_in_a_shm_of_64_mb():
    out = _in_small_shm(SMALL_SHM)
    assert out.startswith("refused:") and out.endswith("done\n"), out


# Says its own number and those of its workers, then waits in the middle of an epoch.
KILLED = """
import os, sys, time
import facula
import facula.multiprocessing as mp
from facula.utils import data
mp.set_sharing_strategy(sys.argv[1])

class Large(data.Dataset):
    def __len__(self):
        return 100
    def __getitem__(self, i):
        return facula.full((300_000,), float(i))

iterator = iter(data.DataLoader(Large(), batch_size=2, num_workers=4))
batches = [next(iterator) for _ in range(10)]
print(os.getpid(), *(w.pid for w in iterator._workers), flush=True)
time.sleep(100)
"""


def _lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _names(pids):
    return [n for n in os.listdir("/dev/shm") if any(f"_{pid}_" in n for pid in pids)]


def _eventually(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_a_killed_program_leaves_no_process_and_no_name(strategy):
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", KILLED, strategy], stdout=subprocess.PIPE, text=True
    )
    with process:
        pids = process.stdout.readline().split()
        assert len(pids) == 5
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert _eventually(lambda: not any(map(_lives, pids[1:])))
        assert _eventually(lambda: not _names(pids))


def test_killed_workers_leave_no_descriptor():
    import facula
    from facula.utils import data

    class Large(data.Dataset):
        def __len__(self):
            return 100

        def __getitem__(self, i):
            return facula.full((300_000,), float(i))

    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    loader = data.DataLoader(Large(), batch_size=2, num_workers=2)
    next(iter(loader))
    before, stats = descriptors(), facula._C._shared_memory_stats()
    for _ in range(5):
        iterator = iter(loader)
        batch = next(iterator)
        for worker in iterator._workers:
            os.kill(worker.pid, signal.SIGKILL)
        with pytest.raises(RuntimeError, match="SIGKILL"):
            list(iterator)
        del iterator, batch, worker
    assert _eventually(lambda: descriptors() == before)
    assert facula._C._shared_memory_stats() == stats


def test_epochs_over_python_objects_need_no_more_memory():
    code = """
import facula
from bench.loader_memory import growth
early, late = growth(facula, 100_000, 12)
print(early, late)
"""
    # In a process of its own: what other tests freed would be counted.
    root = str(Path(__file__).parents[3])
    path = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    out = subprocess.check_output(
        [sys.executable, "-W", "ignore", "-c", code], env={**os.environ, "PYTHONPATH": path}
    )
    early, late = map(int, out.split())
    assert late - early < 0.02 * early
