"""The programs of examples/ train, write what they promise, and go on where they were stopped."""

import ast
import json
import math
import re
import subprocess
import sys

import pytest
from example_programs import EXAMPLES, SMALL, losses_of, run, skip_unless_there


def test_every_program_is_tested():
    importing = "\nfrom training import"
    sharing = {p.stem for p in EXAMPLES.glob("*.py") if importing in p.read_text()}
    assert sharing == set(SMALL)


@pytest.mark.parametrize("name", SMALL)
def test_a_run_leaves_losses_checkpoint_and_picture(name, tmp_path):
    skip_unless_there(name)
    printed = run(name, tmp_path, "--steps", 3).stdout
    losses = losses_of(tmp_path)
    assert len(losses) == 3 and all(math.isfinite(loss) for loss in losses)
    assert re.search(r"\d\.\d", printed.splitlines()[-1])
    assert (tmp_path / "checkpoint.pt").stat().st_size > 1000
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", SMALL)
def test_a_resumed_run_has_the_losses_of_one_without_a_stop(name, tmp_path):
    skip_unless_there(name)
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    run(name, whole, "--steps", 4, "--no-plot")
    run(name, stopped, "--steps", 2, "--no-plot")
    run(name, stopped, "--steps", 4, "--no-plot", "--resume")
    assert losses_of(stopped) == losses_of(whole)
    assert losses_of(whole)[2] != losses_of(whole)[1]


def test_vae_learns(tmp_path):
    run("vae", tmp_path, "--steps", 150, "--no-plot")
    losses = losses_of(tmp_path)
    assert sum(losses[-10:]) < 0.75 * sum(losses[:10])


@pytest.mark.parametrize("name", SMALL)
def test_help_shows_the_first_line_of_the_program(name, tmp_path):
    skip_unless_there(name)
    text = run(name, tmp_path, "--help").stdout
    about = ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text())).splitlines()[0]
    assert about in " ".join(text.split())


@pytest.mark.parametrize(
    "options, message",
    [
        (["--resume"], "there is no .*checkpoint.pt to resume from"),
        (["--steps", "0"], "--steps: invalid positive int value: '0'"),
        (["--lr", "nan"], "--lr: invalid positive float value: 'nan'"),
    ],
)
def test_wrong_options_are_told(options, message, tmp_path):
    process = run("vae", tmp_path, *options, ok=False)
    assert re.search(message, process.stderr)
    assert "Traceback" not in process.stderr


def test_processes_train_one_model_without_locks():
    options = ["--steps", "150", "--processes", "3"]
    process = subprocess.run(
        [sys.executable, "-m", "facula", "run", EXAMPLES / "hogwild.py", *options],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert process.returncode == 0, process.stderr
    found = json.loads(process.stdout)
    assert found["before"] < 0.3 and found["after"] > 0.8
    # A process that begins late finds a model that others have trained: its losses fall no more.
    assert all(sum(own[-10:]) < 10 for own in found["losses"])
