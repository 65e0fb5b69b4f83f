"""The graphs of traced programs and the code made of them read as PyTorch's."""

import sys
from pathlib import Path

import facula
import facula.fx
import pytest
import torch
import torch.fx

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from fx.models import build  # noqa: E402

CASES = list(zip(build(facula), build(torch), strict=True))


@pytest.mark.parametrize("ours, theirs", CASES, ids=[ours[0] for ours, _ in CASES])
def test_graph_and_code_read_as_pytorch_s(ours, theirs):
    mine, other = facula.fx.symbolic_trace(ours[1]), torch.fx.symbolic_trace(theirs[1])
    assert str(mine.graph).replace("facula.", "torch.") == str(other.graph)
    assert mine.code.replace("facula.", "torch.") == other.code
    for a, b in zip(mine.graph.nodes, other.graph.nodes, strict=True):
        assert (a.op, a.name, str(a.args), str(a.kwargs)) == (
            b.op,
            b.name,
            str(b.args).replace("torch.", "facula."),
            str(b.kwargs).replace("torch.", "facula."),
        )
        assert [u.name for u in a.users] == [u.name for u in b.users]
