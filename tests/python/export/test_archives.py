"""export.save and export.load: what a file gives back, and files that are refused."""

import io
import json
import zipfile

import facula
import pytest
from export.programs import build
from facula import nn
from facula.export import Dim, export, load, save

PROGRAMS = build(facula)


def _saved(program, **options):
    file = io.BytesIO()
    save(program, file, **options)
    file.seek(0)
    return file


def _leaves(values):
    return facula.utils._pytree.tree_flatten(values)[0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_loaded_program_is_the_saved_one(name):
    module, args, kwargs = PROGRAMS[name]
    program = export(module, args, kwargs)
    read = load(_saved(program))
    assert str(read) == str(program)
    assert read.module().code == program.module().code
    assert read.dialect == program.dialect
    assert list(read.state_dict) == list(program.state_dict)
    for key, value in program.state_dict.items():
        facula.testing.assert_close(read.state_dict[key], value, rtol=0, atol=0)
        assert type(read.state_dict[key]) is type(value)
    pairs = zip(_leaves(program.example_inputs), _leaves(read.example_inputs), strict=True)
    for a, b in pairs:
        assert facula.equal(a, b) if isinstance(a, facula.Tensor) else a == b


def test_decomposed_program_keeps_what_it_changes():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", facula.zeros(3))

        def forward(self, x):
            self.count.add_(1)
            x.mul_(2)
            return x + self.count

    program = export(Counter(), (facula.ones(3),)).run_decompositions()
    read = load(_saved(program))
    assert read.dialect == "ATEN" and str(read) == str(program)
    x, module = facula.ones(3), read.module()
    facula.testing.assert_close(module(x), facula.full((3,), 3.0))
    facula.testing.assert_close(x, facula.full((3,), 2.0))
    facula.testing.assert_close(module.count, facula.ones(3))


def test_tensors_share_memory_as_they_did():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Parameter(facula.rand(4, 3))
            self.b = self.a
            self.register_buffer("rows", self.a.detach()[1:3])
            self.register_buffer("turned", facula.rand(2, 5).t())

        def forward(self, x):
            return x @ self.a.t() @ self.b + self.rows.sum() + self.turned.sum()

    program = export(Tied(), (facula.rand(2, 3),))
    file = _saved(program)
    weights = [n for n in zipfile.ZipFile(file).namelist() if "/weight_" in n]
    read = load(file).state_dict
    assert len(weights) == 2
    assert read["a"] is read["b"] and isinstance(read["a"], nn.Parameter)
    assert read["rows"].data_ptr() == read["a"][1:].data_ptr()
    assert read["turned"].stride() == (1, 5)


A, B = Dim("a"), Dim("b", max=64)
DYNAMIC = {
    "equal": (lambda x, y: x + y, ({0: A}, {0: A})),
    "product": (lambda x, y: x.reshape(x.shape[0] * x.shape[1]) + y.sum(), ({0: A, 1: B}, None)),
    "joined": (lambda x, y: facula.cat([x, y]).reshape(-1, 2), ({0: A}, {0: B})),
    "factory": (lambda x, y: facula.zeros(x.shape[0] + 1, 2) + x.shape[0], ({0: A}, None)),
    "returned": (lambda x, y: (x.shape[0], x.shape[0] * 3, x), ({0: A}, None)),
    "derived": (lambda x, y: x + y[1:], ({0: A}, {0: A + 1})),
    "compared": (lambda x, y: x * 2 if x.shape[0] > 2 else x, ({0: Dim.AUTO}, None)),
}


class _Function(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, x, y):
        return self.f(x, y)


@pytest.mark.parametrize("name", DYNAMIC)
def test_dynamic_sizes_stay_dynamic(name):
    function, shapes = DYNAMIC[name]
    more = 1 if name == "derived" else 0
    x, y = facula.rand(4, 6), facula.rand(4 + more, 6)
    program = export(_Function(function), (x, y), dynamic_shapes=shapes)
    read = load(_saved(program))
    assert str(read) == str(program)
    rows = 7
    given = facula.rand(rows, 6), facula.rand(rows + more, 6) if shapes[1] else y
    facula.testing.assert_close(read.module()(*given), function(*given))
    again = load(_saved(read))
    assert str(again) == str(program)


def test_conditions_of_sizes_are_checked_after_loading():
    def function(x, y):
        return x if x.shape[0] * 2 != y.shape[0] else y

    x, y = facula.rand(4, 6), facula.rand(5, 6)
    shapes = ({0: Dim.AUTO}, {0: Dim.AUTO})
    read = load(_saved(export(_Function(function), (x, y), dynamic_shapes=shapes)))
    read.module()(facula.rand(3, 6), y)
    with pytest.raises(AssertionError, match="Guard failed"):
        read.module()(x, facula.rand(8, 6))


def test_extra_files():
    program = export(nn.ReLU(), (facula.ones(2),))
    found = {"notes.txt": ""}
    load(_saved(program, extra_files={"notes.txt": "one"}), extra_files=found)
    assert found == {"notes.txt": "one"}


def test_file_by_path(tmp_path):
    path = tmp_path / "program.pt2"
    save(export(nn.ReLU(), (facula.ones(2),)), path)
    assert zipfile.ZipFile(path).namelist()[0].startswith("program/")
    facula.testing.assert_close(load(path).module()(-facula.ones(2)), facula.zeros(2))


def _changed(file, change):
    """The file with another `models/model.json`."""
    source, target = zipfile.ZipFile(file), io.BytesIO()
    with zipfile.ZipFile(target, "w") as made:
        for name in source.namelist():
            data = source.read(name)
            if name.endswith("models/model.json"):
                data = json.dumps(change(json.loads(data))).encode()
            made.writestr(name, data)
    target.seek(0)
    return target


def _other_version(data):
    return data | {"schema_version": {"major": 7, "minor": 0}}


def _other_operator(data):
    data["graph_module"]["graph"]["nodes"][0]["target"] = "torch.ops.nowhere.relu.default"
    return data


def test_files_that_cannot_be_read_are_refused():
    file = _saved(export(nn.ReLU(), (facula.ones(2),)))
    with pytest.raises(RuntimeError, match="version 8 of the format; got 7"):
        load(_changed(file, _other_version))
    with pytest.raises(NotImplementedError, match="nowhere"):
        load(_changed(file, _other_operator))
    checkpoint = io.BytesIO()
    facula.save({"a": 1}, checkpoint)
    with pytest.raises(RuntimeError, match="expected a .pt2 archive"):
        load(checkpoint)
    with pytest.raises(TypeError, match="expected an ExportedProgram; got ReLU"):
        save(nn.ReLU(), io.BytesIO())
