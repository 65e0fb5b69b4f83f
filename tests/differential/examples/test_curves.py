"""The programs of examples/ give PyTorch's losses when PyTorch runs them."""

import pytest
from example_programs import SMALL, losses_of, run, skip_unless_there


@pytest.mark.parametrize("name", SMALL)
def test_losses_are_those_of_pytorch(name, tmp_path):
    skip_unless_there(name)
    steps = 12
    options = ["--steps", steps, "--no-plot", "--double"]
    run(name, tmp_path / "facula", *options)
    run(name, tmp_path / "torch", *options, launcher=())
    ours, theirs = losses_of(tmp_path / "facula"), losses_of(tmp_path / "torch")
    assert len(ours) == len(theirs) == steps
    assert ours == pytest.approx(theirs, rel=1e-6)
