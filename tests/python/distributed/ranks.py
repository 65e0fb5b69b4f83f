"""Starts processes that are the ranks of a group, and collects what they print."""

import os
import subprocess
import sys
import textwrap
import time

# What each rank runs before its own program: a store of files, and the default group.
_START = """
import os, signal, sys, time
from datetime import timedelta
import facula
import facula.distributed as dist

class Files:
    def __init__(self, folder):
        self.folder = folder
    def _path(self, key):
        return os.path.join(self.folder, key.replace("/", "_"))
    def set(self, key, value):
        with open(self._path(key) + ".new", "wb") as f:
            f.write(value)
        os.rename(f.name, self._path(key))
    def get(self, key):
        with open(self._path(key), "rb") as f:
            return f.read()
    def check(self, keys):
        return all(os.path.exists(self._path(k)) for k in keys)
    def wait(self, keys, timeout):
        end = time.monotonic() + timeout.total_seconds()
        while not self.check(keys):
            if time.monotonic() > end:
                raise RuntimeError(f"nobody has set {keys}")
            time.sleep(0.002)
    def delete_key(self, key):
        os.unlink(self._path(key))

rank, size = int(sys.argv[1]), int(sys.argv[2])
store = Files(sys.argv[3])
"""
_INIT = """
dist.init_process_group("gloo", store=store, rank=rank, world_size=size,
                        timeout=timedelta(seconds=20))
open(os.path.join(sys.argv[3], f"ready{rank}"), "w").close()
"""


class Ranks:
    """Processes that run one program, each with its own `rank`.

    Args:
        program (str): runs with `facula`, `dist`, `rank`, `size` and `store` defined.
        size (int): the number of ranks.
        folder (path): for their store.
        init (bool): whether to make the default group first.
        prefix (callable): gives the command before that of a rank, as a list.
    """

    def __init__(self, program, size, folder, init=True, prefix=lambda r: [], **environment):
        self.folder = str(folder)
        text = _START + (_INIT if init else "") + textwrap.dedent(program)
        env = {**os.environ, "FACULA_DISTRIBUTED_HEARTBEAT": "1.5", **environment}
        self.processes = [
            subprocess.Popen(
                [*prefix(r), sys.executable, "-c", text, str(r), str(size), self.folder],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=env,
            )
            for r in range(size)
        ]

    def wait_ready(self):
        """Wait until all have made the group."""
        end = time.monotonic() + 30
        for rank in range(len(self.processes)):
            while not os.path.exists(os.path.join(self.folder, f"ready{rank}")):
                ended = [p.communicate()[1] for p in self.processes if p.poll()]
                assert not ended, f"a rank has ended: {ended[0]}"
                assert time.monotonic() < end, "the ranks did not make their group"
                time.sleep(0.005)

    def end(self, timeout=30):
        """Wait for all; returns (exit code, output, errors) of each."""
        results = []
        try:
            for p in self.processes:
                out, err = p.communicate(timeout=timeout)
                results.append((p.returncode, out, err))
        finally:
            for p in self.processes:
                if p.poll() is None:
                    p.kill()
                    p.communicate()
        return results


def outputs(program, size, folder, **environment):
    """What each rank printed; AssertionError if one of them failed."""
    results = Ranks(program, size, folder, **environment).end()
    for code, _, err in results:
        assert code == 0, err
    return [out for _, out, _ in results]
