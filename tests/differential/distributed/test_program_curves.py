"""The examples of several ranks and processes: curves beside PyTorch's."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
SMALL = ["--width=32", "--layers=2", "--length=16"]
CASES = [
    ("pipeline.py", 2, "--schedule=1F1B"),
    ("pipeline.py", 2, "--schedule=DualPipeV"),
    ("pipeline.py", 4, "--schedule=1F1B", "--copies=2", "--sharded"),
    ("parameter_server.py", 3, "--in-turn"),
    ("sharded.py", 2, "digits", "--mode=ddp"),
    ("sharded.py", 2, "gpt", "--mode=ddp", *SMALL),
    ("sharded.py", 2, "gpt", "--mode=fsdp", *SMALL),
    ("sharded.py", 4, "gpt", "--mode=2d", *SMALL),
    ("hogwild.py", 0, "--processes=1"),
]


def losses_of(runner, program, ranks, *options):
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    command = [*(launcher if ranks else ()), EXAMPLES / program, "--steps=5", *options]
    result = subprocess.run(
        [sys.executable, *runner, *command], capture_output=True, text=True, timeout=120
    )
    lines = [line for line in result.stdout.splitlines() if "losses" in line]
    # On busy machines PyTorch's processes may abort as they end; what they have printed counts.
    ended_well = result.returncode == 0 or not runner
    assert ended_well and lines, result.stderr
    return [loss for line in lines for loss in flat(json.loads(line)["losses"])]


def flat(losses):
    """Losses of one rank, or of several."""
    return losses if isinstance(losses[0], float) else [loss for own in losses for loss in own]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_curves_are_those_of_pytorch(case):
    wanted = losses_of([], *case)
    assert losses_of(["-m", "facula", "run"], *case) == pytest.approx(wanted, rel=1e-5)
