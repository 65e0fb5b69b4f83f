"""The extension of examples/extension, built in each way that its README names."""

import shutil
import subprocess
import sys

import pytest
from facula.utils import cpp_extension
from plugin_library import PACKAGE, ROOT, run_example

EXAMPLE = ROOT / "examples" / "extension"
EXPECTED = [
    "values:    [0.118, 0.2071, 0.5, 1.2071, 2.118]",
    "gradients: [0.0528, 0.1464, 0.5, 0.8536, 0.9472]",
]


@pytest.fixture
def folder(tmp_path):
    """A copy outside of the tree."""
    return shutil.copytree(EXAMPLE, tmp_path / "extension")


def check(out):
    assert "gradcheck: True" in out and "vmap:      (4, 3)" in out and "meta:      meta" in out
    assert all(line in out for line in EXPECTED), out


def test_compiled_when_it_is_loaded(folder, tmp_path):
    check(run_example(folder, XDG_CACHE_HOME=str(tmp_path / "cache")))


@pytest.mark.skipif(shutil.which("cmake") is None, reason="no cmake")
def test_with_cmake(folder, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(PACKAGE.parent))
    python = f"-DPython_EXECUTABLE={sys.executable}"
    for command in (["cmake", "-S", ".", "-B", "build", python], ["cmake", "--build", "build"]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    check(run_example(folder, "build/squareplus.so"))


def test_load_reports_the_compiler(tmp_path):
    source = tmp_path / "bad.cpp"
    source.write_text("this is no C++\n")
    with pytest.raises(RuntimeError, match="compiler failed"):
        cpp_extension.load("bad", source, build_directory=tmp_path)
    with pytest.raises(NotImplementedError, match="is_python_module"):
        cpp_extension.load("bad", source, is_python_module=True)
    with pytest.raises(NotImplementedError, match="'cuda'"):
        cpp_extension.include_paths("cuda")
