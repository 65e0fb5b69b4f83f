"""The code of graphs that make_fx records reads as PyTorch's."""

import sys
import warnings
from pathlib import Path

import facula
import pytest
import torch
from facula.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.proxy_tensor import make_fx as torch_make_fx

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from fx.make_fx_programs import DIFFERENT, build  # noqa: E402
from fx.symbolic_programs import build as build_symbolic  # noqa: E402

OURS, THEIRS = build(facula), build(torch)


def _marked(name):
    reason = DIFFERENT.get(name)
    return (
        pytest.param(name, marks=pytest.mark.xfail(strict=True, reason=reason)) if reason else name
    )


@pytest.mark.parametrize("name", map(_marked, OURS))
def test_code_reads_as_pytorch_s(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine = make_fx(OURS[name][0])(*OURS[name][1])
        other = torch_make_fx(THEIRS[name][0])(*THEIRS[name][1])
    assert mine.code.replace("facula.", "torch.") == other.code
    for a, b in zip(mine.graph.nodes, other.graph.nodes, strict=True):
        value, expected = a.meta.get("val"), b.meta.get("val")
        assert isinstance(value, facula.Tensor) == isinstance(expected, torch.Tensor)
        if isinstance(expected, torch.Tensor):
            assert (tuple(value.shape), value.stride()) == (
                tuple(expected.shape),
                expected.stride(),
            )
            assert str(value.dtype) == str(expected.dtype).replace("torch", "facula")


SYMBOLIC, THEIR_SYMBOLIC = build_symbolic(facula), build_symbolic(torch)


@pytest.mark.parametrize("name", SYMBOLIC)
def test_code_with_symbolic_sizes_reads_as_pytorch_s(name):
    mine = make_fx(SYMBOLIC[name][0], tracing_mode="symbolic")(*SYMBOLIC[name][1])
    other = torch_make_fx(THEIR_SYMBOLIC[name][0], tracing_mode="symbolic")
    assert mine.code.replace("facula.", "torch.") == other(*THEIR_SYMBOLIC[name][1]).code
