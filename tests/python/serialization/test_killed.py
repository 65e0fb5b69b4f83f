"""A process that is killed while it saves leaves the old file or the new one, whole."""

import os
import random
import signal
import stat
import subprocess
import sys
import time

import facula
import pytest
from facula.serialization.safetensors import load_file, save_file

SAVER = """
import sys, facula
from facula.serialization.safetensors import save_file
path, how = sys.argv[1:]
number = 0
print("ready", flush=True)
while True:
    number += 1
    obj = {"number": facula.tensor(number), "values": facula.full((1_000_000,), float(number))}
    if how == "safetensors":
        save_file(obj, path)
    else:
        facula.save(obj, path, _use_new_zipfile_serialization=how == "zip")
"""


def read(path, how):
    return load_file(path) if how == "safetensors" else facula.load(path)


@pytest.mark.parametrize("how", ["zip", "legacy", "safetensors"])
def test_killed_saver(tmp_path, how):
    path = tmp_path / "a.pt"
    first = {"number": facula.tensor(0), "values": facula.zeros(1_000_000)}
    save_file(first, path) if how == "safetensors" else facula.save(first, path)
    os.chmod(path, 0o640)
    rng, kills = random.Random(0), int(os.environ.get("FACULA_KILLS", "4"))
    for _ in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVER, str(path), how], stdout=subprocess.PIPE
        )
        try:
            assert process.stdout.readline() == b"ready\n"
            time.sleep(rng.uniform(0, 0.1))
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
        back = read(path, how)
        assert (back["values"] == back["number"].item()).all()
        assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_links_and_permissions_are_kept(tmp_path):
    target, link = tmp_path / "target.pt", tmp_path / "link.pt"
    facula.save([1], target)
    os.chmod(target, 0o604)
    link.symlink_to(target)
    facula.save([2], link)
    assert link.is_symlink() and facula.load(target) == [2]
    assert stat.S_IMODE(target.stat().st_mode) == 0o604
    assert sorted(os.listdir(tmp_path)) == ["link.pt", "target.pt"]
