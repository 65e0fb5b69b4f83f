"""Digits and the character GPT under torchrun: one curve for any number and kind of ranks."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[4] / "examples" / "sharded.py"
SMALL = ["--steps", "3", "--width", "32", "--layers", "2", "--length", "16"]


@functools.cache
def losses(what, mode, size):
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={size}"]
    run = subprocess.run(
        [
            sys.executable,
            *("-m", "facula", "run"),
            *(launcher if mode != "one" else ()),
            *(PROGRAM, what, "--mode", mode, *SMALL),
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=100,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])["losses"]


@pytest.mark.parametrize("what", ["digits", "gpt"])
def test_curves_of_shards_are_those_of_copies(what):
    sharded = losses(what, "fsdp", 2)
    assert sharded == losses(what, "ddp", 2)
    assert sharded[-1] < sharded[0]


@pytest.mark.parametrize(
    ("what", "mode", "size"),
    [
        *(("digits", "ddp", size) for size in (1, 2, 4)),
        *(("gpt", "fsdp", size) for size in (1, 2, 4)),
        *((what, "2d", 4) for what in ("digits", "gpt")),
    ],
)
def test_curves_are_those_of_one_process(what, mode, size):
    assert losses(what, mode, size) == pytest.approx(losses(what, "one", 1), rel=1e-5)
