"""The type stubs: Python reads them, and they know every operator that users can call."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import facula
import pytest

PACKAGE = Path(facula.__file__).parent
STUBS = PACKAGE / "_operators"
EXAMPLE = """
import facula
from facula import Tensor, nn

x = facula.zeros(2, 3, dtype=facula.float32, requires_grad=True)
y: Tensor = facula.add(x, 1, alpha=2)
z: Tensor = (x @ y.t()).relu_().sum(dim=0, keepdim=True)
shape: facula.Size = z.shape
n: int = z.numel() + x.dim() + shape[0]
view: Tensor = x.view(-1).reshape([3, 2])[0]
parts: tuple[Tensor, ...] = x.split(1)
loss: Tensor = nn.Linear(3, 4)(x).sum()
loss.backward()
grad: Tensor | None = x.grad
moved: Tensor = x.to("cpu").to(facula.float64).detach()
mantissa: Tensor = facula.frexp(x.detach()).mantissa
"""
MISTAKES = [
    "facula.add(facula.zeros(1), 'x')",
    "facula.zeros(1).view(2.5)",
    "facula.zeros(1).sum(keepdims_=1)",
    "x: str = facula.zeros(1).dim()",
]


def _names(body):
    return {node.name for node in body if isinstance(node, ast.FunctionDef)}


def _module(name):
    return ast.parse((STUBS / f"{name}.pyi").read_text())


def _own(row):
    """The names of a record's function and in-place forms, aliases included."""
    names = {row["name"], *filter(None, (a.strip() for a in row["aliases"].split(",")))}
    return names | {f"{n}_" for n in names if "inplace" in row["forms"]}


def _plain(names):
    return {n for n in names if not n.startswith("__")}


def test_all_parse():
    """Every stub of the package is Python."""
    files = sorted(PACKAGE.rglob("*.pyi"))
    assert {STUBS / "functions.pyi", STUBS / "tensor.pyi", PACKAGE / "_C.pyi"} <= set(files)
    for path in files:
        ast.parse(path.read_text(), str(path))


def test_functions():
    """Every function of the top level and of nn, special, linalg and fft has a stub."""
    for module, file in (
        ("", "functions"),
        ("nn", "nn"),
        ("special", "special"),
        ("linalg", "linalg"),
        ("fft", "fft"),
    ):
        known = _names(_module(file).body)
        wanted = _plain(facula._C._function_names(module))
        if not module:  # these stand in their modules' stubs
            wanted = {n for n in wanted if n.partition("_")[0] not in ("special", "linalg", "fft")}
        assert not wanted - known, f"{file}.pyi lacks {sorted(wanted - known)}"


def test_methods():
    """Every operator with the form `method` has a stub, in-place and further names, too."""
    tree = next(n for n in _module("tensor").body if isinstance(n, ast.ClassDef))
    known = _names(tree.body)
    for row in facula._C._operator_table():
        if "method" in row["forms"]:
            assert not _plain(_own(row)) - known, f"tensor.pyi lacks a form of {row['name']}"


def test_core():
    """What the extension defines by hand is in _C.pyi, and nothing else."""
    tree = ast.parse((PACKAGE / "_C.pyi").read_text())
    known = {n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    known |= {n.target.id for n in tree.body if isinstance(n, ast.AnnAssign)}
    public = {n for n in vars(facula._C) if not n.startswith("_")}
    shown = {n for n in known if not n.startswith("_")}
    assert public - known == set()
    assert shown - public == set()


def test_tensor_class():
    """Methods and properties that the binding defines by hand are in _C.pyi."""
    tree = ast.parse((PACKAGE / "_C.pyi").read_text())
    base = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "TensorBase")
    known = _names(base.body) | {n.target.id for n in base.body if isinstance(n, ast.AnnAssign)}
    tensor = next(n for n in _module("tensor").body if isinstance(n, ast.ClassDef))
    known |= _names(tensor.body)
    public = {n for n in dir(facula.Tensor) if not n.startswith("_")}
    rare = {n for n in public if n.startswith("is_")}  # one for each kind of device
    assert not public - rare - known


def _mypy():
    return shutil.which("mypy", path=str(Path(sys.executable).parent)) or shutil.which("mypy")


@pytest.mark.skipif(not _mypy(), reason="mypy is not installed")
def test_type_checker(tmp_path):
    """A type checker accepts a plain program and refuses plain mistakes."""
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(EXAMPLE)
    bad.write_text("import facula\n" + "".join(f"{line}\n" for line in MISTAKES))
    command = [_mypy(), "--cache-dir", str(tmp_path / "cache"), "--follow-imports=silent"]
    env = {"MYPYPATH": str(PACKAGE.parent), "PATH": ""}
    passed = subprocess.run([*command, str(good)], env=env, capture_output=True, text=True)
    assert passed.returncode == 0, passed.stdout
    refused = subprocess.run([*command, str(bad)], env=env, capture_output=True, text=True)
    lines = [f"bad.py:{k + 2}: error" in refused.stdout for k in range(len(MISTAKES))]
    assert all(lines), refused.stdout
