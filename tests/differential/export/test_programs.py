"""Exported programs print as PyTorch's, and give its results and gradients."""

import copy
import re
import sys
import warnings
from pathlib import Path

import facula
import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from export.programs import build  # noqa: E402

OURS, THEIRS = build(facula), build(torch)
DIFFERENT = {
    "losses": "PyTorch's loss functions broadcast before they call the operator",
    "norms_and_means": "the order of norm() is a float in facula",
}

_VIEWS = "views of views and splits are one operator in facula"
_COMPOSED = "the operator consists of others in facula"
DIFFERENT_DECOMPOSED = {
    "attention": _COMPOSED,
    "tokens": _COMPOSED,
    "split": _VIEWS,
    "unbind": _VIEWS,
    "views": _VIEWS,
    "items_set": _VIEWS,
    "shapes_used": _VIEWS,
    "stack_and_cat": _COMPOSED,
    "scalars": "2 - x is rsub, which is taken apart otherwise",
    "casts": "checks of what is converted are not kept",
    "factories": "full() names its layout",
    "no_argument_used": "full() names its layout",
    "activations": _COMPOSED,
    "losses": _COMPOSED,
    "cross_entropy": _COMPOSED,
    "norms_and_means": _COMPOSED,
    "interpolation": _COMPOSED,
}


def _text(program):
    """A program's text without the places in the source."""
    lines = str(program).replace("facula.", "torch.").split("\n")
    return "\n".join(line for line in lines if line.strip() and not line.strip().startswith("#"))


def _export(framework, name, programs):
    module, args, kwargs = copy.deepcopy(programs[name][:1]) + programs[name][1:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return framework.export.export(module, args, kwargs)


def _marked_decomposed(name):
    return _marked(name, DIFFERENT_DECOMPOSED)


def _marked(name, reasons=DIFFERENT):
    reason = reasons.get(name)
    mark = pytest.mark.xfail(strict=True, reason=reason)
    return pytest.param(name, marks=mark) if reason else name


@pytest.mark.parametrize("name", map(_marked, OURS))
def test_program_prints_as_pytorch_s(name):
    mine, other = _export(facula, name, OURS), _export(torch, name, THEIRS)
    assert _text(mine) == _text(other)
    code = re.sub(r"\n\s*\n", "\n", mine.module().code.replace("facula.", "torch."))
    assert code == re.sub(r"\n\s*\n", "\n", other.module().code)
    assert list(mine.state_dict) == list(other.state_dict)
    assert sorted(mine.constants) == sorted(other.constants)


@pytest.mark.parametrize("name", OURS)
def test_module_of_program_gives_eager_s_results(name):
    module, args, kwargs = OURS[name]
    program = _export(facula, name, OURS).module()
    expected = copy.deepcopy(module)(*copy.deepcopy(args), **copy.deepcopy(kwargs))
    got = program(*copy.deepcopy(args), **copy.deepcopy(kwargs))
    leaves, spec = facula.utils._pytree.tree_flatten(expected)
    found, other = facula.utils._pytree.tree_flatten(got)
    assert spec == other
    for a, b in zip(leaves, found, strict=True):
        if isinstance(a, facula.Tensor):
            assert facula.equal(a, b)
        else:
            assert a == b


@pytest.mark.parametrize("name", map(_marked_decomposed, OURS))
def test_decomposed_program_prints_as_pytorch_s(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine = _export(facula, name, OURS).run_decompositions()
        other = _export(torch, name, THEIRS).run_decompositions()
    assert _text(mine) == _text(other)


@pytest.mark.parametrize("name", ["linear", "blocks", "attention", "convolution", "tokens"])
def test_program_trains_as_pytorch_s(name):
    mine, other = _export(facula, name, OURS).module(), _export(torch, name, THEIRS).module()
    with torch.no_grad():
        for a, b in zip(mine.parameters(), other.parameters(), strict=True):
            b.copy_(torch.tensor(a.tolist()))
    (mine(*OURS[name][1]) ** 2).sum().backward()
    (other(*THEIRS[name][1]) ** 2).sum().backward()
    for a, b in zip(mine.parameters(), other.parameters(), strict=True):
        assert torch.allclose(torch.tensor(a.grad.tolist()), b.grad, rtol=1e-4, atol=1e-5)
