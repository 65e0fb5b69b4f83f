"""Graphs with branches, loops and scans print as PyTorch's, and PyTorch reads their files."""

import io
import sys
from pathlib import Path

import facula
import pytest
import torch
import torch._higher_order_ops
from facula.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.proxy_tensor import make_fx as torch_make_fx

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from higher_order.programs import functions, modules  # noqa: E402

FUNCTIONS, THEIR_FUNCTIONS = functions(facula), functions(torch)
MODULES, THEIR_MODULES = modules(facula), modules(torch)


@pytest.fixture(autouse=True)
def forget_compiled_functions():
    """What PyTorch saw vary in another test of this process it would pass to branches here."""
    torch._dynamo.reset()


def _codes(graph):
    codes = [(name, one.code) for name, one in graph.named_modules() if hasattr(one, "code")]
    return str(codes).replace("facula.", "torch.")


@pytest.mark.parametrize("mode", ["real", "fake"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_code_reads_as_pytorch_s(name, mode):
    mine = make_fx(FUNCTIONS[name][0], tracing_mode=mode)(*FUNCTIONS[name][1])
    other = torch_make_fx(THEIR_FUNCTIONS[name][0], tracing_mode=mode)
    assert _codes(mine) == _codes(other(*THEIR_FUNCTIONS[name][1]))


def _text(program):
    """A program as text, without places in the source and ranges.

    PyTorch's have the range of a symbol that no node uses.
    """
    text = str(program).replace("facula.", "torch.").partition("Range constraints")[0]
    lines = text.split("\n")
    return "\n".join(line for line in lines if line.strip() and not line.strip().startswith("#"))


@pytest.mark.parametrize("name", MODULES)
def test_program_prints_as_pytorch_s(name):
    mine = facula.export.export(*MODULES[name])
    other = torch.export.export(*THEIR_MODULES[name])
    assert _text(mine) == _text(other)
    assert _text(mine.run_decompositions()) == _text(other.run_decompositions())


@pytest.mark.parametrize("name", MODULES)
def test_files_are_read_on_both_sides(name):
    for mine, other, programs, values in (
        (facula, torch, MODULES, THEIR_MODULES),
        (torch, facula, THEIR_MODULES, MODULES),
    ):
        program, file = mine.export.export(*programs[name]), io.BytesIO()
        mine.export.save(program, file)
        file.seek(0)
        got = other.export.load(file).module()(*values[name][1])
        expected = program.module()(*programs[name][1])
        a, b = (torch.utils._pytree.tree_leaves(v) for v in (got, expected))
        for x, y in zip(a, b, strict=True):
            torch.testing.assert_close(x.tolist(), y.tolist(), rtol=1e-4, atol=1e-4)
