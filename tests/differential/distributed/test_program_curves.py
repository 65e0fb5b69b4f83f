"""The examples of a pipeline and of a parameter server: curves beside PyTorch's."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
CASES = [
    ("pipeline.py", 2, "--schedule=1F1B"),
    ("pipeline.py", 2, "--schedule=DualPipeV"),
    ("parameter_server.py", 3, "--in-turn"),
]


def losses_of(runner, program, ranks, option):
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    result = subprocess.run(
        [sys.executable, *runner, *launcher, EXAMPLES / program, "--steps=5", option],
        capture_output=True,
        text=True,
        timeout=120,
    )
    lines = [line for line in result.stdout.splitlines() if "losses" in line]
    assert result.returncode == 0 and lines, result.stderr
    return [loss for line in lines for loss in json.loads(line)["losses"]]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_curves_are_those_of_pytorch(case):
    wanted = losses_of([], *case)
    assert losses_of(["-m", "facula", "run"], *case) == pytest.approx(wanted, rel=1e-5)
