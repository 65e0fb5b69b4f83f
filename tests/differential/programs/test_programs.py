"""A sample of tests/programs: the same script gives PyTorch's figures with facula."""

import importlib.util
import os
from pathlib import Path

import facula
import pytest

RUNNER = Path(__file__).resolve().parents[2] / "programs" / "run.py"
_spec = importlib.util.spec_from_file_location("programs_run", RUNNER)
runner = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(runner)


@pytest.mark.parametrize("name", ["vae", "graph_network", "polynomial_autograd"])
def test_a_program_gives_pytorch_s_figures(name, monkeypatch):
    above = str(Path(facula.__file__).parents[1])
    monkeypatch.setitem(os.environ, "PYTHONPATH", above)
    row = runner.compare(runner.read(runner.PROGRAMS / f"{name}.py"), [])
    assert row.state == "runs", row


@pytest.mark.parametrize(
    "expected, found, near, answer",
    [
        ("loss 1.0000 n 3", "loss 1.0005 n 3", 1e-3, True),
        ("loss 1.0000 n 3", "loss 1.0100 n 3", 1e-3, False),
        ("loss 1.0", "accuracy 1.0", 1e-3, False),
        ("loss nan", "loss nan", 1e-3, True),
        ("loss nan", "loss 1.0", 1e-3, False),
        ("loss 0.0004", "loss 0.0005", 1e-3, True),
        ("loss 0.0004", "loss 0.0006", 1e-3, False),
        ("loss 1e-05", "loss 1.2e-05", 1e-3, False),
        ("right 36", "right 37", 1e-1, True),
        ("right 36", "right 37", 1e-2, False),
    ],
)
def test_figures_agree_by_words_and_numbers(expected, found, near, answer):
    assert runner.agree(expected, found, near) == answer
