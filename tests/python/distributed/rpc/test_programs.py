"""The example of a parameter server, as users start it."""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[4] / "examples" / "parameter_server.py"


def losses_of(*options):
    result = subprocess.run(
        [
            sys.executable,
            *("-m", "facula", "run", "-m", "torch.distributed.run"),
            *("--standalone", "--nproc-per-node=3", PROGRAM, "--steps=15", *options),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    return [json.loads(line)["losses"] for line in result.stdout.splitlines()]


def test_trainers_learn_with_one_server():
    for losses in losses_of():
        assert len(losses) == 15 and sum(losses[-5:]) < 0.9 * sum(losses[:5])


def test_trainers_that_take_turns_have_the_same_losses_again():
    assert losses_of("--in-turn") == losses_of("--in-turn")
