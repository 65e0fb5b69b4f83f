"""The fuzzer of files: it finds nothing in the loaders, and finds what is planted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FILES = Path(__file__).parents[2] / "fuzz" / "files.py"
PLANTS = """
import ctypes
def crashes(kind, data):
    if kind == "tar": ctypes.string_at(0)
def hoards(kind, data):
    if kind == "tar": bytearray(1 << 40)
def lies(kind, data):
    if kind == "tar": raise KeyError(kind)
"""


def _fuzz(folder, *options):
    command = [sys.executable, FILES, "--seed", "5", "--save", folder, "--seconds", "400", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=500)


def test_loaders_hold(tmp_path):
    done = _fuzz(tmp_path, "--cases", "150")
    assert done.stdout.splitlines()[-1] == "150 cases, 0 findings", done.stdout[-2000:]
    assert done.returncode == 0


@pytest.mark.parametrize(
    "plant, text",
    [
        ("crashes", "exit status"),
        ("hoards", "MemoryError"),
        ("lies", "KeyError"),
    ],
)
def test_what_is_planted_is_found(plant, text, tmp_path, monkeypatch):
    (tmp_path / "plants.py").write_text(PLANTS)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    done = _fuzz(tmp_path, "--cases", "60", "--target", f"plants:{plant}")
    assert done.returncode == 1 and text in done.stdout, done.stdout + done.stderr
    assert not done.stdout.splitlines()[-1].endswith(" 0 findings")
    saved = list(tmp_path.glob("files-5-*.tar"))
    assert saved and f"--seed 5 --case {saved[0].stem.split('-')[2]}" in done.stdout
