"""Lifetimes of Python objects: what PyTorch sees is what the scenarios expect of facula."""

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
facula = pytest.importorskip("facula")

sys.path.insert(0, str(Path(__file__).parents[2] / "python"))
from lifetimes import SCENARIOS  # noqa: E402


@pytest.mark.parametrize("case", SCENARIOS, ids=lambda c: c.name)
def test_torch_sees_the_same(case):
    wanted = case.expected if case.torch is ... else case.torch
    assert case.run(torch) == wanted
    if case.flag or facula._C._pyobject_scheme == "count":
        assert case.run(facula) == case.expected
