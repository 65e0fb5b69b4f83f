"""The device of examples/device, built as its README says."""

import shlex
import subprocess
import sys

import pytest
from plugin_library import PACKAGE, ROOT, run_example

EXAMPLE = ROOT / "examples" / "device"
EXPECTED = """\
device:  abacus:0 of 2
kernel:  [-0.0, -1.0, -2.0] [-0.0, -1.0, -2.0]
in place: [-0.0, -1.0, -2.0]
memory:  True
missing: Could not run 'aten::add.Tensor' with arguments from the 'abacus' backend"""


@pytest.fixture
def library(tmp_path, monkeypatch):
    """Compiled by hand."""
    monkeypatch.setenv("PYTHONPATH", str(PACKAGE.parent))
    options = [sys.executable, "-m", "facula.utils.cpp_extension"]
    options = subprocess.run(options, check=True, capture_output=True, text=True).stdout
    path = tmp_path / "abacus.so"
    source = EXAMPLE / "abacus.cpp"
    command = ["g++", *shlex.split(options), str(source), "-lfacula", "-o", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return path


def test_compiled_by_hand(library):
    assert run_example(EXAMPLE, library).startswith(EXPECTED)


def test_strides_and_other_dtypes(library, tmp_path):
    (tmp_path / "run.py").write_text(
        """
import sys, facula
facula.ops.load_library(sys.argv[1])
x = facula.arange(6.0).view(2, 3).t()
out = facula.empty(2, 3, device="abacus").t()
facula.neg(x.to("abacus"), out=out)
print(facula.equal(out.cpu(), -x), facula.equal((-x.to("abacus")[::2]).cpu(), -x[::2]))
try:
    -facula.ones(2, dtype=facula.float64, device="abacus")
except NotImplementedError as error:
    print(error)
"""
    )
    out = run_example(tmp_path, library)
    assert out == "True True\nabacus: expected float32; other dtypes have no kernel\n"
