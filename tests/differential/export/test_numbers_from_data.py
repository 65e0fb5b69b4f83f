"""Programs whose sizes data decide: PyTorch reads our files, we read PyTorch's."""

import io
import sys
import warnings
from pathlib import Path

import facula
import facula.fx.experimental.symbolic_shapes
import pytest
import torch
import torch.fx.experimental.symbolic_shapes

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from export.data_programs import build  # noqa: E402

OURS, THEIRS = build(facula), build(torch)


def _module(framework, function):
    class Program(framework.nn.Module):
        def forward(self, *args):
            return function(*args)

    return Program()


def _file(framework, programs, name):
    function, sample, _ = programs[name]
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        framework.export.save(framework.export.export(_module(framework, function), sample), file)
    file.seek(0)
    return file


def _told(framework, results):
    leaves = framework.utils._pytree.tree_leaves(results)
    return [r.tolist() if isinstance(r, framework.Tensor) else r for r in leaves]


@pytest.mark.parametrize("name", OURS)
def test_pytorch_runs_our_file(name):
    program = torch.export.load(_file(facula, OURS, name))
    function, _, other = THEIRS[name]
    assert _told(torch, program.module()(*other)) == _told(torch, function(*other))


@pytest.mark.parametrize("name", OURS)
def test_we_run_pytorch_s_file(name):
    program = facula.export.load(_file(torch, THEIRS, name))
    function, _, other = OURS[name]
    assert _told(facula, program.module()(*other)) == _told(facula, function(*other))
