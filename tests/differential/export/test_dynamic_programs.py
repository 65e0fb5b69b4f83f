"""Programs with dynamic sizes print as PyTorch's, as exported and taken apart."""

import sys
from pathlib import Path

import facula
import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))


def _programs(framework):
    """name -> (module, dynamic shapes)"""
    Dim = framework.export.Dim
    a, b = Dim("a", min=2), Dim("b", min=2, max=64)

    class Function(framework.nn.Module):
        def __init__(self, f):
            super().__init__()
            self.f = f

        def forward(self, x, y):
            return self.f(x, y)

    found = {
        "equal": (lambda x, y: x + y, ({0: a}, {0: a})),
        "product": (lambda x, y: x.reshape(x.shape[0] * x.shape[1]), ({0: a, 1: b}, None)),
        "returned": (lambda x, y: (x.shape[0], x.shape[0] * 3, y), ({0: a}, None)),
        "compared": (lambda x, y: x * 2 if x.shape[0] > 2 else x, ({0: Dim.AUTO}, None)),
        "activated": (lambda x, y: framework.nn.functional.silu(x) @ y.t(), ({0: a}, {0: b})),
    }
    return {name: (Function(f), shapes) for name, (f, shapes) in found.items()}


OURS, THEIRS = _programs(facula), _programs(torch)


def _text(program):
    """A program as text, without places in the source and ranges.

    PyTorch's have the range of a symbol that no node uses.
    """
    text = str(program).replace("facula.", "torch.").partition("Range constraints")[0]
    lines = text.split("\n")
    return "\n".join(line for line in lines if line.strip() and not line.strip().startswith("#"))


def _exported(framework, programs, name):
    module, shapes = programs[name]
    x = framework.arange(24.0).reshape(4, 6)
    y = framework.ones(4 if name == "equal" else 5, 6)
    return framework.export.export(module, (x, y), dynamic_shapes=shapes)


@pytest.mark.parametrize("name", OURS)
def test_programs_print_as_pytorch_s(name):
    mine, other = _exported(facula, OURS, name), _exported(torch, THEIRS, name)
    assert _text(mine) == _text(other)
    ranges = {str(k): str(v) for k, v in other.range_constraints.items()}
    assert {str(k): str(v) for k, v in mine.range_constraints.items()}.items() <= ranges.items()
    assert _text(mine.run_decompositions()) == _text(other.run_decompositions())
