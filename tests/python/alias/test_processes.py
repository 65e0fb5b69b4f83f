"""Processes that a program starts see the same torch, and pickles name it."""

import pickle
import textwrap

import facula
import pytest
from alias.processes import run, run_code

WORK = """
import sys
import multiprocessing
import torch

class Point(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([1.0, 2.0]))

def double(point):
    assert torch.__name__ == "torch" and type(point.weight) is torch.nn.Parameter
    point.weight.data *= 2
    return point

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(1) as pool:
        print(pool.map(double, [Point()])[0].weight.tolist())
"""


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_children_by_every_start_method(tmp_path, method):
    (tmp_path / "work.py").write_text(WORK)
    assert run("-m", "facula", "run", str(tmp_path / "work.py"), method) == "[2.0, 4.0]\n"
    assert run("-m", "facula", "run", "-m", "work", method, cwd=tmp_path) == "[2.0, 4.0]\n"


def test_a_subprocess_sees_the_same_torch():
    code = """
    import subprocess, sys, torch
    inner = "import torch; print(torch.__name__, torch.__version__)"
    out = subprocess.check_output([sys.executable, "-c", inner], text=True)
    assert out.split() == ["torch", torch.__version__], out
    """
    run_code(textwrap.dedent(code))


def test_pickles_name_torch_and_load_under_both_names(tmp_path):
    code = """
    import pickle, sys, torch
    things = {"model": torch.nn.Linear(2, 1), "dtype": torch.float64, "size": torch.Size([2]),
              "device": torch.device("cpu"), "x": torch.ones(2), "f": torch.add,
              "adam": torch.optim.Adam}
    text = pickle.dumps(things, 2)
    assert b"facula" not in text and b"ctorch.nn.modules.linear\\nLinear" in text
    again = pickle.loads(text)
    assert again["x"].equal(things["x"]) and again["adam"] is torch.optim.Adam
    assert again["f"] is torch.add and again["size"] == (2,) and again["dtype"] is torch.float64
    other = pickle.loads(text.replace(b"ctorch.nn.modules.linear", b"cfacula.nn.modules.linear"))
    assert type(other["model"]) is torch.nn.Linear
    torch.save(things["model"], sys.argv[1])
    assert type(torch.load(sys.argv[1], weights_only=False)) is torch.nn.Linear
    """
    file = tmp_path / "model.pt"
    run_code(textwrap.dedent(code), str(file))
    assert type(facula.load(file, weights_only=False)) is facula.nn.Linear


def test_facula_s_own_pickles_load_under_torch_s_name(tmp_path):
    file = tmp_path / "own.pkl"
    file.write_bytes(pickle.dumps([facula.ones(2), facula.nn.Linear(2, 1), facula.float16]))
    code = """
    import pickle, sys, torch
    x, model, dtype = pickle.load(open(sys.argv[1], "rb"))
    assert type(x) is torch.Tensor and type(model) is torch.nn.Linear and dtype is torch.float16
    """
    run_code(textwrap.dedent(code), str(file))


def test_a_test_runner_is_run_under_the_name(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import torch\ndef test_name():\n    assert torch.__name__ == 'torch'\n"
    )
    arguments = ["-q", "-p", "no:cacheprovider", str(tmp_path)]
    out = run("-m", "facula", "run", "-m", "pytest", *arguments, cwd=tmp_path)
    assert "1 passed" in out
