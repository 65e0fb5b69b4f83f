"""The example of a pipeline, as users start it: curves of one process."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[4] / "examples" / "pipeline.py"


def losses_of(ranks, *options):
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    result = subprocess.run(
        [
            sys.executable,
            *("-m", "facula", "run"),
            *(launcher if ranks else []),
            PROGRAM,
            "--steps=15",
            *options,
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)["losses"]


@pytest.fixture(scope="module")
def alone():
    return losses_of(0, "--schedule=none")


@pytest.mark.parametrize(
    ("ranks", "options"),
    [
        (2, ["--schedule=1F1B"]),
        (2, ["--schedule=Interleaved1F1B", "--stages-per-rank=2"]),
        (4, ["--schedule=InterleavedZeroBubble"]),
        (4, ["--schedule=1F1B", "--copies=2"]),
        (4, ["--schedule=1F1B", "--copies=2", "--sharded"]),
    ],
    ids=str,
)
def test_a_pipeline_trains_as_one_process_does(ranks, options, alone):
    assert alone[-1] < 0.8 * alone[0]
    assert losses_of(ranks, *options) == pytest.approx(alone, rel=1e-4)
