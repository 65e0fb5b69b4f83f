"""The programs of examples/ as the tests run them: small, and as processes of their own."""

import csv
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
# Where `make programs` and `make examples` install what programs need.
PACKAGES = ROOT / "build" / "program-packages" / "site-packages"

# What makes a program small enough for a test.
SMALL = {
    "actor_critic": ["--batch-size", "4", "--moves", "8"],
    "char_gpt": ["--batch-size", "4", "--length", "16", "--write", "20"],
    "finetune_gpt2": ["--base-steps", "2", "--batch-size", "4", "--length", "16"],
    "resnet": ["--batch-size", "16", "--width", "4"],
    "speech_commands": ["--batch-size", "8", "--words", "2", "--voices", "3"],
    "vae": ["--batch-size", "16"],
}


def skip_unless_there(name):
    """Skips a test of a program whose data are not on this machine."""
    if name == "resnet" and not importlib.util.find_spec("skimage"):
        pytest.skip("scikit-image is not installed")
    if name == "finetune_gpt2" and not transformers_is_there():
        pytest.skip("transformers, or what it needs, is not installed (make examples)")
    if name == "speech_commands" and not shutil.which("espeak-ng"):
        pytest.skip("espeak-ng is not installed (apt-get install espeak-ng)")


def transformers_is_there():
    """Whether a process of a program can import transformers."""
    installed = (PACKAGES / "transformers").exists() or importlib.util.find_spec("transformers")
    # Dependencies that PyTorch has as well are left to the environment.
    return installed and importlib.util.find_spec("typing_extensions")


def environment(name):
    """The environment of a program's process, with packages for the one that needs some."""
    paths = [os.environ.get("PYTHONPATH", ""), str(PACKAGES) if name == "finetune_gpt2" else ""]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
    }


def run(name, folder, *options, launcher=("-m", "facula", "run"), ok=True):
    """Runs a small form of a program; returns the ended process."""
    command = [sys.executable, *launcher, EXAMPLES / f"{name}.py", "--quiet", "--out-dir", folder]
    process = subprocess.run(
        [*map(str, command), *SMALL[name], *map(str, options)],
        env=environment(name),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (process.returncode == 0) == ok, process.stderr
    return process


def losses_of(folder):
    """The losses that a run has left in a folder."""
    with open(Path(folder) / "losses.csv", newline="") as file:
        return [float(row["loss"]) for row in csv.DictReader(file)]
