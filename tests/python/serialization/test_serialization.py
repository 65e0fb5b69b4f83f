"""Saving and loading without PyTorch: round trips, refusals, damaged and hostile files."""

import collections
import io
import os
import pickle
import random
import struct
import zipfile
from _pickle import UnpicklingError

import facula
import pytest
from facula import serialization
from facula.nn.parameter import Parameter
from facula.serialization.safetensors import load_file, save_file

REFUSED = (RuntimeError, EOFError, UnpicklingError, ValueError, NotImplementedError)
_FROM_TYPE = b"ctorch._tensor\n_rebuild_from_type_v2\n"
# A rebuild within a rebuild that would reach bytearray(2**31 - 1).
NESTED_REBUILD = (
    b"\x80\x02" + _FROM_TYPE + b"(" + _FROM_TYPE + b"ctorch\nTensor\n("
    b"c__builtin__\nbytearray\nctorch\nTensor\nJ\xff\xff\xff\x7f\x85NtNtR."
)
DTYPES = [
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
]


class Point:
    """A class that checkpoints may hold only with permission."""

    def __init__(self):
        self.x = 1


class Evil:
    """Runs code when a careless reader loads it."""

    called = []

    def __reduce__(self):
        return Evil.called.append, (1,)


def saved(obj, **options):
    stream = io.BytesIO()
    serialization.save(obj, stream, **options)
    return stream.getvalue()


def loaded(data, **options):
    return serialization.load(io.BytesIO(data), **options)


def with_record(data, name, content):
    """The archive with a record replaced, or removed when `content` is None."""
    source, target = zipfile.ZipFile(io.BytesIO(data)), io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for path in source.namelist():
            if path != f"archive/{name}":
                archive.writestr(path, source.read(path))
            elif content is not None:
                archive.writestr(path, content)
    return target.getvalue()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weights_only", [True, False])
def test_every_dtype_round_trips(dtype, weights_only):
    t = facula.tensor([0, 1, 3]).to(getattr(facula, dtype))
    back = loaded(saved(t), weights_only=weights_only)
    assert back.dtype == t.dtype
    assert back.tolist() == t.tolist()


@pytest.mark.parametrize(
    "obj",
    [
        {"a": [1, 2.5, None, True, "é"], (1, 2): -(2**70)},
        b"ab",
        bytearray(b"ab"),
        1 + 2j,
        {1, 2},
        collections.OrderedDict(a=1),
        collections.Counter("aab"),
    ],
)
@pytest.mark.parametrize("protocol", [1, 2, 3, 4, 5])
def test_plain_objects_round_trip(obj, protocol):
    back = loaded(saved(obj, pickle_protocol=protocol))
    assert back == obj and type(back) is type(obj)


def test_own_types_round_trip():
    obj = [facula.float16, facula.device("cpu"), facula.Size([1, 2]), facula.strided]
    assert loaded(saved(obj)) == obj


@pytest.mark.parametrize("legacy", [False, True])
def test_shared_storage_stays_shared(legacy):
    x = facula.arange(6.0)
    data = saved({"x": x, "view": x[2:4], "same": x}, _use_new_zipfile_serialization=not legacy)
    back = loaded(data)
    back["x"][2] = 70
    assert back["view"].tolist() == [70, 3]
    assert back["same"].data_ptr() == back["x"].data_ptr()
    assert back["view"].storage_offset() == 2


def test_strides_and_flags_are_kept():
    t = facula.arange(12.0).reshape(3, 4).t()[1:]
    back = loaded(saved(t))
    assert back.stride() == t.stride() and back.tolist() == t.tolist()
    assert loaded(saved(facula.ones(2, requires_grad=True))).requires_grad
    parameter = loaded(saved(Parameter(facula.ones(2))))
    assert type(parameter) is Parameter and parameter.requires_grad


def test_records_are_aligned_and_whole():
    data = saved([facula.ones(3), facula.ones(5)])
    archive = zipfile.ZipFile(io.BytesIO(data))
    assert archive.testzip() is None
    for info in archive.infolist():
        lengths = struct.unpack("<HH", data[info.header_offset + 26 : info.header_offset + 30])
        assert (info.header_offset + 30 + sum(lengths)) % 64 == 0


def test_write_only_file_object():
    class Sink:
        def __init__(self):
            self.parts = []

        def write(self, data):
            self.parts.append(bytes(data))

    sink = Sink()
    serialization.save([1], sink)
    assert loaded(b"".join(sink.parts)) == [1]


def test_path_is_replaced_in_one_step(tmp_path):
    path = tmp_path / "a.pt"
    serialization.save([1], path)
    with pytest.raises(AttributeError):
        serialization.save([facula.ones(2), lambda: 0], path)
    assert serialization.load(path) == [1]
    assert os.listdir(tmp_path) == ["a.pt"]
    with pytest.raises(RuntimeError, match="Parent directory"):
        serialization.save([1], tmp_path / "no" / "a.pt")
    with pytest.raises(RuntimeError, match="directory"):
        serialization.save([1], tmp_path)


def test_mmap(tmp_path):
    path = tmp_path / "a.pt"
    serialization.save({"a": facula.ones(1000)}, path)
    mapped = serialization.load(path, mmap=True)["a"]
    mapped.add_(1)
    assert mapped[999].item() == 2
    assert serialization.load(path)["a"][0].item() == 1
    with pytest.raises(ValueError, match="needs a path"):
        serialization.load(io.BytesIO(), mmap=True)


def test_map_location():
    data, seen = saved({"a": facula.ones(3)}), []
    for place in ("meta", facula.device("meta"), {"cpu": "meta"}):
        assert loaded(data, map_location=place)["a"].device.type == "meta"

    def keep(storage, location):
        seen.append((storage.nbytes(), location))

    assert loaded(data, map_location=keep)["a"].tolist() == [1, 1, 1]
    assert seen == [(12, "cpu")]
    with pytest.raises(RuntimeError, match="location nowhere"):
        loaded(data, map_location="nowhere")
    with pytest.raises(TypeError, match="callable"):
        loaded(data, map_location=3)


def test_classes_need_permission():
    data = saved(Point())
    with pytest.raises(UnpicklingError, match="Unsupported global: GLOBAL .*Point"):
        loaded(data)
    assert loaded(data, weights_only=False).x == 1
    before = serialization.get_safe_globals()
    with serialization.safe_globals([Point]):
        assert loaded(data).x == 1
    assert serialization.get_safe_globals() == before and Point not in before
    names = serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data))
    assert [name.rpartition(".")[2] for name in names] == ["Point"]


def test_nothing_is_executed():
    data = saved(None)
    with pytest.raises(UnpicklingError):
        loaded(with_record(data, "data.pkl", pickle.dumps(Evil(), 2)))
    assert Evil.called == []
    for text in (b"cos\nsystem\n(X\2\0\0\0idtR.", b"cbuiltins\neval\n.", b"(ios\nsystem\n."):
        with pytest.raises(UnpicklingError):
            loaded(with_record(data, "data.pkl", b"\x80\x02" + text))
    with (
        serialization.safe_globals([os.system]),
        pytest.raises(UnpicklingError, match="never takes from"),
    ):
        loaded(with_record(data, "data.pkl", b"\x80\x02cposix\nsystem\n."))


@pytest.mark.parametrize(
    "name, content, error",
    [
        ("data/0", None, RuntimeError),
        ("data/0", b"123", RuntimeError),
        ("data/0", b"1" * 40, RuntimeError),
        ("byteorder", b"sideways", ValueError),
        ("version", None, RuntimeError),
        ("version", b"99\n", RuntimeError),
        ("version", b"x", RuntimeError),
        ("data.pkl", None, RuntimeError),
        ("data.pkl", b"\x80\x02}", EOFError),
        ("data.pkl", b"\x80\x02X\xff\xff\xff\x7fab.", EOFError),
        ("data.pkl", b"\x80\x02\x8d" + b"\xff" * 7 + b"\x7f.", EOFError),
        ("data.pkl", b"\x80\x02h\x05.", UnpicklingError),
        ("data.pkl", b".", UnpicklingError),
        ("data.pkl", b"\x80\x02c__builtin__\nbytearray\nJ\xff\xff\xff\x7f\x85R.", UnpicklingError),
        (
            "data.pkl",
            b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(h\0ctorch\nTensor\n)Nt.",
            UnpicklingError,
        ),
        ("data.pkl", b"\x80\x02})" + b"\x85" * 100_000 + b"K\x01s.", UnpicklingError),
        ("data.pkl", b"\x80\x02}K\x01\x85" + b"2\x86" * 60 + b"K\x01s.", UnpicklingError),
    ],
)
def test_bad_records(name, content, error):
    with pytest.raises(error):
        loaded(with_record(saved({"a": facula.ones(3)}), name, content))


def test_rebuild_functions_do_not_nest():
    data = with_record(saved(None), "data.pkl", NESTED_REBUILD)
    with pytest.raises(UnpicklingError, match="Trying to rebuild a tensor with"):
        loaded(data)


def geometry(offset, size, stride):
    data = saved(facula.ones(3))
    text = zipfile.ZipFile(io.BytesIO(data)).read("archive/data.pkl")
    start = text.index(b"QK\0K\3\x85") + 1
    end = text.index(b"\x89", start)
    middle = b"".join(pickle.dumps(part, 2)[2:-1] for part in (offset, size, stride))
    return with_record(data, "data.pkl", text[:start] + middle + text[end:])


@pytest.mark.parametrize(
    "offset, size, stride",
    [
        (1, (3,), (1,)),
        (-1, (3,), (1,)),
        (0, (4,), (1,)),
        (0, (2,), (3,)),
        (0, (3,), (-1,)),
        (0, (2**62, 2**62), (0, 0)),
        (2**63, (0,), (1,)),
        (0, (3,), (1, 1)),
        (0, (1.5,), (1,)),
        (0, ("a",), (1,)),
        (2**62, (1,), (1,)),
    ],
)
def test_bad_geometry(offset, size, stride):
    with pytest.raises((RuntimeError, UnpicklingError)):
        loaded(geometry(offset, size, stride))


def test_other_byte_order():
    data = saved(facula.tensor([1, 256], dtype=facula.int16))
    assert loaded(with_record(data, "byteorder", b"big")).tolist() == [256, 1]


def test_wrong_checksum():
    data = saved(facula.ones(3))
    bad = data.replace(struct.pack("<3f", 1, 1, 1), struct.pack("<3f", 1, 2, 1))
    with pytest.raises(RuntimeError, match="checksum"):
        loaded(bad)
    serialization.set_crc32_options(False)
    try:
        assert loaded(saved(facula.ones(3))).tolist() == [1, 1, 1]
    finally:
        serialization.set_crc32_options(True)


def test_not_a_checkpoint():
    cases = ((b"", EOFError), (b"hello world", UnpicklingError), (b"PK\3\4", RuntimeError))
    for data, error in cases:
        with pytest.raises(error):
            loaded(data)
    with pytest.raises(AttributeError, match="seek"):
        serialization.load(None)
    with pytest.raises(AttributeError, match="write"):
        serialization.save(1, None)
    with pytest.raises(RuntimeError, match="pickle_module"):
        loaded(saved(1), pickle_module=pickle, weights_only=True)


def test_two_dtypes_of_one_memory_are_refused():
    x = facula.ones(2)
    with pytest.raises(RuntimeError, match="one dtype"):
        saved([x, x.view(facula.int32)])


def mutated(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4])):
        at, kind = rng.randrange(len(data)), rng.random()
        if kind < 0.6:
            data[at] = rng.randrange(256)
        elif kind < 0.7:
            del data[at : at + rng.randrange(1, 20)]
        elif kind < 0.85:
            data[at:at] = rng.randbytes(rng.randrange(1, 9))
        else:
            data[at : at + 8] = rng.choice([b"\xff" * 8, b"\0" * 8, b"\xff" * 7 + b"\x7f"])
        data = data or bytearray(b"P")
    return bytes(data)


def test_damaged_files_raise(tmp_path):
    x = facula.arange(6.0)
    obj = {
        "x": x,
        "v": x[2:4],
        "p": Parameter(facula.ones(2, 2)),
        "s": {1, 2},
        "c": 1 + 2j,
        "b": b"ab",
        "n": [1, 2.5, None, 2**70],
        "o": collections.OrderedDict(a=(1, (2,))),
        "u": facula.ones(2, dtype=facula.uint8),
        "d": facula.device("cpu"),
        "t": facula.float16,
    }
    save_file({"x": x}, tmp_path / "x.st")
    whole = saved(obj)
    text = zipfile.ZipFile(io.BytesIO(whole)).read("archive/data.pkl")
    old = saved(obj, _use_new_zipfile_serialization=False)
    plain = (tmp_path / "x.st").read_bytes()
    rng = random.Random(0)
    makers = [
        lambda: loaded(mutated(whole, rng)),
        lambda: loaded(with_record(whole, "data.pkl", mutated(text, rng))),
        lambda: loaded(mutated(old, rng)),
        lambda: load_file(io.BytesIO(mutated(plain, rng))),
    ]
    refused = 0
    for number in range(5000):
        try:
            makers[number % len(makers)]()
        except REFUSED:
            refused += 1
    assert refused > 3000


def test_every_truncation_raises():
    for legacy in (False, True):
        data = saved({"a": facula.ones(3)}, _use_new_zipfile_serialization=not legacy)
        for length in range(0, len(data), 7):
            with pytest.raises(REFUSED):
                loaded(data[:length])


def test_safetensors(tmp_path):
    path = tmp_path / "x.safetensors"
    tensors = {
        "a": facula.arange(6.0).reshape(2, 3).t(),
        "b": facula.tensor([True]),
        "c": facula.tensor(3),
        "d": facula.ones(0, 2),
    }
    save_file(tensors, path, metadata={"k": "v"})
    back = load_file(path)
    assert sorted(back) == sorted(tensors)
    for name, t in tensors.items():
        assert back[name].dtype == t.dtype and back[name].tolist() == t.tolist()
    with pytest.raises(ValueError):
        save_file({"a": 1}, path)
    for header in (
        b"{",
        b"[]",
        b'{"a":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}}',
        b'{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}',
        b"[" * 100_000,
    ):
        with pytest.raises(ValueError):
            load_file(io.BytesIO(struct.pack("<Q", len(header)) + header))
    with pytest.raises(ValueError, match="too long"):
        load_file(io.BytesIO(struct.pack("<Q", 2**60)))
