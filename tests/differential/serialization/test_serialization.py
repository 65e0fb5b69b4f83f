"""Files that PyTorch reads as we do, and the other way round."""

import collections
import io
import zipfile

import facula
import pytest
from facula import serialization
from facula.nn.parameter import Parameter

torch = pytest.importorskip("torch")

CASES = {
    "tensor": lambda lib: lib.arange(6.0),
    "shared": lambda lib: (lambda x: {"a": x, "b": x[2:4]})(lib.arange(6.0)),
    "strided": lambda lib: lib.arange(12.0).reshape(3, 4).t()[1:],
    "scalar": lambda lib: lib.tensor(3),
    "empty": lambda lib: lib.zeros(0, 3),
    "expanded": lambda lib: lib.ones(1).expand(5, 3),
    "requires_grad": lambda lib: lib.ones(2, requires_grad=True),
    "non_leaf": lambda lib: lib.ones(2, requires_grad=True) * 2,
    "conj": lambda lib: lib.tensor([1 + 2j]).conj(),
    "meta": lambda lib: lib.empty(2, 3, device="meta"),
    "plain": lambda lib: {"a": [1, 2.5, None, True], "b": (1, 2, 3, 4, 5), "c": {1}, "d": b"ab"},
    "numbers": lambda lib: [2**70, -5, 1 + 2j, 1e300, 255, 65536],
    "ordered": lambda lib: collections.OrderedDict(a=lib.ones(1), b=lib.ones(2)),
    "types": lambda lib: [lib.float16, lib.device("cpu"), lib.device("cuda", 1), lib.Size([1, 2])],
    "layout": lambda lib: lib.strided,
    **{
        f"dtype_{name}": lambda lib, name=name: lib.tensor([0, 1, 3]).to(getattr(lib, name))
        for name in (
            "bool",
            "uint8",
            "int8",
            "int16",
            "int32",
            "int64",
            "uint16",
            "uint32",
            "uint64",
            "float16",
            "bfloat16",
            "float32",
            "float64",
            "complex64",
            "complex128",
            "float8_e4m3fn",
            "float8_e5m2",
            "float8_e4m3fnuz",
            "float8_e5m2fnuz",
            "float8_e8m0fnu",
            "bcomplex32",
        )
    },
}


def saved(module, obj, **options):
    stream = io.BytesIO()
    module.save(obj, stream, **options)
    stream.seek(0)
    return stream


def records(stream):
    archive = zipfile.ZipFile(stream)
    return {name: archive.read(name) for name in archive.namelist() if "_id" not in name}


def plain(obj):
    """An object with tensors as lists, to compare across libraries."""
    if hasattr(obj, "untyped_storage"):
        values = None if obj.device.type == "meta" else obj.tolist()
        dtype = str(obj.dtype).rpartition(".")[2]
        return (
            values,
            dtype,
            tuple(obj.shape),
            obj.stride(),
            obj.storage_offset(),
            obj.requires_grad,
        )
    if isinstance(obj, dict):
        return {key: plain(value) for key, value in obj.items()}
    if isinstance(obj, (list, tuple)):
        return [plain(value) for value in obj]
    return str(obj).rpartition(".")[2]


@pytest.mark.parametrize("name", CASES)
def test_records_are_pytorch_s(name):
    ours = records(saved(serialization, CASES[name](facula)))
    theirs = records(saved(torch, CASES[name](torch)))
    assert list(ours) == list(theirs)
    assert ours == theirs


@pytest.mark.parametrize("name", CASES)
def test_each_reads_the_other(name):
    ours, theirs = CASES[name](facula), CASES[name](torch)
    assert plain(torch.load(saved(serialization, ours), weights_only=True)) == plain(theirs)
    for weights_only in (True, False):
        back = serialization.load(saved(torch, theirs), weights_only=weights_only)
        assert plain(back) == plain(ours)


def test_parameters_and_state_dicts():
    theirs = torch.nn.Parameter(torch.ones(2, 2))
    ours = Parameter(facula.ones(2, 2))
    assert type(serialization.load(saved(torch, theirs))) is Parameter
    assert isinstance(torch.load(saved(serialization, ours)), torch.nn.Parameter)
    state = serialization.load(saved(torch, torch.nn.Linear(2, 3).state_dict()))
    assert list(state) == ["weight", "bias"] and state._metadata[""] == {"version": 1}


@pytest.mark.parametrize("name", ["tensor", "shared", "strided", "plain", "ordered", "conj"])
def test_legacy_format(name):
    ours, theirs = CASES[name](facula), CASES[name](torch)
    option = {"_use_new_zipfile_serialization": False}
    assert plain(torch.load(saved(serialization, ours, **option))) == plain(theirs)
    for weights_only in (True, False):
        stream = saved(torch, theirs, **option)
        assert plain(serialization.load(stream, weights_only=weights_only)) == plain(ours)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pytorch_s_protocols(protocol):
    stream = saved(torch, {"a": torch.ones(2), "b": b"ab"}, pickle_protocol=protocol)
    back = serialization.load(stream)
    assert back["a"].tolist() == [1, 1] and back["b"] == b"ab"


def test_archive_is_named_after_the_file(tmp_path):
    for module, obj in ((torch, torch.ones(1)), (serialization, facula.ones(1))):
        module.save(obj, tmp_path / "a b.c.pt")
        assert zipfile.ZipFile(tmp_path / "a b.c.pt").namelist()[0] == "a b.c/data.pkl"


@pytest.mark.parametrize("data", [b"", b"PK\3\4", b"PK\3\4" + b"x" * 500])
def test_same_error_class(data):
    with pytest.raises(Exception) as theirs:
        torch.load(io.BytesIO(data))
    with pytest.raises(theirs.type):
        serialization.load(io.BytesIO(data))
