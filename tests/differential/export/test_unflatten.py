"""The graphs of trees that unflatten makes are PyTorch's."""

import copy
import sys
from pathlib import Path

import facula
import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from export.trees import build  # noqa: E402

OURS, THEIRS = build(facula), build(torch)


def _shown(framework, trees, name):
    module, args, kwargs = copy.deepcopy(trees[name])
    tree = framework.export.unflatten(framework.export.export(module, args, kwargs))
    shown = []
    for fqn, one in tree.named_modules():
        shown.append((fqn, list(one._parameters), list(one._buffers)))
        shown.append(str(one.graph).replace("facula.", "torch."))
    return shown


@pytest.mark.parametrize("name", OURS)
def test_graphs_of_trees_are_pytorch_s(name):
    assert _shown(facula, OURS, name) == _shown(torch, THEIRS, name)
