"""A package that one of facula and PyTorch wrote reads the same in either, in its own process."""

import ast
import os
import subprocess
import sys

import facula
import package_cases
import pytest

pytest.importorskip("torch")
LIBS = {"facula": ["-m", "facula", "run", "-c"], "torch": ["-W", "ignore", "-c"]}


def run(lib, code):
    # The modules in the package say `import torch`.
    done = subprocess.run(
        [sys.executable, *LIBS[lib], code], capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


@pytest.fixture(scope="module", params=LIBS)
def package(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("modules")
    package_cases.write_modules(folder)
    path = str(folder / f"{request.param}.pt")
    code = package_cases.EXPORT.format(lib="torch", folder=str(folder), path=path)
    return path, run(request.param, code)


def same_numbers(found, expected):
    """Whether nested lists of floats agree: the libraries' products round apart in the last bit."""
    found, expected = (facula.tensor(ast.literal_eval(text)) for text in (found, expected))
    return facula.allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("reader", LIBS)
def test_either_reads_what_the_other_wrote(package, reader):
    path, result = package
    lines = run(reader, package_cases.IMPORT.format(lib="torch", path=path))
    assert same_numbers(lines[0], result[0])
    assert lines[1] == "True True [0, 1, 2, 3]"
    assert lines[2:6] == [
        "refused",
        "[7.0, 3.0, 4.0, 5.0] True (2,)",
        "('a', '0', 'PackageImporter')",
        "'caf\\xe9' b'\\x00\\x01\\x02\\x03\\x04\\x05\\x06'",
    ]
    assert lines[6].startswith("9.0 <torch_package_")


def test_both_write_the_same_records(tmp_path):
    package_cases.write_modules(tmp_path)
    names, pickles = [], []
    for lib in LIBS:
        path = str(tmp_path / lib / "net.pt")
        os.mkdir(tmp_path / lib)
        run(lib, package_cases.EXPORT.format(lib="torch", folder=str(tmp_path), path=path))
        records = run(
            "facula",
            f"import zipfile; z = zipfile.ZipFile({path!r}); print(z.namelist()); "
            "print(z.read('net/model/net.pkl'), z.read('net/.data/extern_modules'))",
        )
        names.append(records[0])
        pickles.append(records[1])
    assert names[0] == names[1]
    assert pickles[0] == pickles[1]


def test_facula_by_its_own_name_reads_what_pytorch_wrote(package):
    path, result = package
    lines = run("torch", package_cases.IMPORT.format(lib="facula", path=path))
    assert same_numbers(lines[0], result[0])


MATCHES = {
    "*": ["a", "a.b", ""],
    "**": ["a", "a.b", ""],
    "a.**.b": ["a.b", "a.x.b", "a.x.y.b", "ab"],
    "a*b": ["ab", "acb", "a.b"],
    "**.a": ["a", "b.a", "ba"],
    "a.*": ["a.", "a.b", "a"],
    "torch.**": ["torch", "torch.a", "torchx"],
    "a+b": ["a+b", "aab"],
}


@pytest.mark.parametrize("pattern", MATCHES)
def test_patterns(pattern):
    import facula
    import torch.package

    groups = [lib.package.GlobGroup(pattern) for lib in (facula, torch)]
    assert repr(groups[0]) == repr(groups[1])
    for name in MATCHES[pattern]:
        assert groups[0].matches(name) == groups[1].matches(name), name
