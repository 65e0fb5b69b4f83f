"""Files of exported programs: PyTorch reads ours, we read PyTorch's, and both print the same."""

import copy
import io
import sys
import warnings
from pathlib import Path

import facula
import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from export.programs import build  # noqa: E402
from export.test_archives import DYNAMIC, _Function  # noqa: E402

OURS, THEIRS = build(facula), build(torch)
# PyTorch's own load() refuses texts among the results.
WITHOUT_FILES = {"numbers_returned"}
NAMES = [name for name in OURS if name not in WITHOUT_FILES]


def _text(program):
    lines = str(program).replace("facula.", "torch.").split("\n")
    return "\n".join(line for line in lines if line.strip() and not line.strip().startswith("#"))


def _exported(framework, programs, name):
    module, args, kwargs = copy.deepcopy(programs[name][:1]) + programs[name][1:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return framework.export.export(module, args, kwargs)


def _file(framework, program):
    file = io.BytesIO()
    framework.export.save(program, file)
    file.seek(0)
    return file


def _as_numbers(values, framework):
    leaves = torch.utils._pytree.tree_leaves(values)
    if framework is facula:
        leaves = facula.utils._pytree.tree_leaves(values)
    return [leaf.tolist() if hasattr(leaf, "tolist") else leaf for leaf in leaves]


def _run(framework, program, programs, name):
    args, kwargs = copy.deepcopy(programs[name][1:])
    return _as_numbers(program.module()(*args, **kwargs), framework)


@pytest.mark.parametrize("name", NAMES)
def test_pytorch_reads_our_file(name):
    program = _exported(facula, OURS, name)
    read = torch.export.load(_file(facula, program))
    assert _text(read) == _text(program)
    assert list(read.state_dict) == list(program.state_dict)
    for key, value in program.state_dict.items():
        assert read.state_dict[key].tolist() == value.tolist()
    got, expected = _run(torch, read, THEIRS, name), _run(facula, program, OURS, name)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_we_read_pytorch_s_file(name):
    program = _exported(torch, THEIRS, name)
    read = facula.export.load(_file(torch, program))
    assert _text(read) == _text(program)
    got, expected = _run(facula, read, OURS, name), _run(torch, program, THEIRS, name)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", [n for n in DYNAMIC if n not in ("joined", "factory")])
def test_pytorch_reads_dynamic_sizes(name):
    function, shapes = DYNAMIC[name]
    more = 1 if name == "derived" else 0
    ours = [facula.rand(4, 6), facula.rand(4 + more, 6)]
    program = facula.export.export(_Function(function), tuple(ours), dynamic_shapes=shapes)
    read = torch.export.load(_file(facula, program))
    assert _text(read) == _text(program)
    given = torch.rand(7, 6), torch.rand(7 + more, 6) if shapes[1] else torch.rand(4, 6)
    torch.testing.assert_close(read.module()(*given), function(*given))
