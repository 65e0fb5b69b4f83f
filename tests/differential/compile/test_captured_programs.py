"""Graphs that a backend of `compile` is called with: as many as PyTorch's, of as many calls."""

import sys
from pathlib import Path

import facula
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "python" / "compile"))
import captured_programs  # noqa: E402

PROGRAMS = captured_programs.programs()


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_many_graphs_as_pytorch_of_as_many_calls(name):
    *_, ours = captured_programs.run(facula, PROGRAMS[name])
    *_, theirs = captured_programs.run(torch, PROGRAMS[name])
    assert ours == theirs == captured_programs.GRAPHS[name]
