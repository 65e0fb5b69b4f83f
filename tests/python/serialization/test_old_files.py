"""Files of PyTorch's first years, whole and damaged."""

import io
import pickle
import struct
from _pickle import UnpicklingError

import facula
import pytest
from old_files import Reference, example_tar, storage_entry, tar_of, tensor_entry, with_views


@pytest.mark.parametrize("weights_only", [True, False])
def test_tar(tmp_path, weights_only):
    path = tmp_path / "old.tar"
    path.write_bytes(example_tar())
    back = facula.load(path, weights_only=weights_only)
    assert back["all"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert [row.tolist() for row in back["rows"]] == [[3, 4, 5], [2, 3, 4]]
    assert back["n"] == (1, "text")
    back["all"].zero_()
    assert [row.tolist() for row in back["rows"]] == [[0, 0, 0]] * 2
    moved = facula.load(path, map_location="meta", weights_only=weights_only)
    assert moved["all"].device.type == "meta"


ONE = storage_entry(1, range(6))
DAMAGED = [
    tar_of(Reference(10), [], [], []),
    tar_of(Reference(1), [ONE[:-4]], [], []),
    tar_of(Reference(1), [ONE[:-32] + struct.pack("<q", 2**40)], [], []),
    tar_of(Reference(1), [ONE[:-32] + struct.pack("<q", -1)], [], []),
    tar_of(Reference(2), [ONE], [(2, 1, 4, 3)], []),
    tar_of(Reference(2), [ONE], [(2, 1, -1, 3)], []),
    tar_of(Reference(2), [ONE], [(2, 7, 0, 3)], []),
    tar_of(Reference(2), [ONE], [3], []),
    tar_of(Reference(2), [ONE], 3, []),
    tar_of(Reference(10), [ONE], [], [tensor_entry(10, 1, (7,), (1,))]),
    tar_of(Reference(10), [ONE], [], [tensor_entry(10, 1, (2,), (1,), -1)]),
    tar_of(Reference(10), [ONE], [], [tensor_entry(10, 3, (2,), (1,))]),
    tar_of(Reference(10), [ONE], [], [tensor_entry(10, 10, (2,), (1,))]),
    tar_of(Reference(10), [ONE], [], [tensor_entry(10, 1, (1,) * 65, (1,) * 65)]),
    tar_of(Reference(10), [ONE], [], [tensor_entry([1], 1, (2,), (1,))]),
    example_tar().replace(b"tensors", b"tensorz"),
    example_tar()[:2500],
]


@pytest.mark.parametrize("data", DAMAGED, ids=range(len(DAMAGED)))
@pytest.mark.parametrize("weights_only", [True, False])
def test_damaged_tar(data, weights_only):
    with pytest.raises((RuntimeError, EOFError, UnpicklingError)):
        facula.load(io.BytesIO(data), weights_only=weights_only)


@pytest.mark.parametrize("weights_only", [True, False])
def test_views_of_storages(weights_only):
    root, view = facula.load(io.BytesIO(with_views()), weights_only=weights_only)
    assert (root.tolist(), view.tolist()) == ([0, 1, 2, 3, 4, 5], [2, 3, 4])
    root[2] = 7
    assert view[0] == 7
    with pytest.raises(UnpicklingError, match="reaches outside"):
        facula.load(io.BytesIO(with_views().replace(b"K\2K\3t", b"K\4K\3t")))


class Own:
    """What weights_only=True does not read."""


@pytest.mark.parametrize(
    "forbidden, forced, weights_only, expected",
    [
        ("0", "0", None, UnpicklingError),
        ("1", "0", None, Own),
        ("yes", "x", None, Own),
        ("TRUE", "", None, Own),
        ("no", "0", None, UnpicklingError),
        ("1", "0", True, UnpicklingError),
        ("0", "1", False, UnpicklingError),
        ("1", "1", None, RuntimeError),
        ("y", "y", False, RuntimeError),
    ],
)
def test_environment_decides(monkeypatch, forbidden, forced, weights_only, expected):
    stream = io.BytesIO()
    facula.save(Own(), stream)
    stream.seek(0)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", forbidden)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", forced)
    if expected is Own:
        assert type(facula.load(stream, weights_only=weights_only)) is Own
        return
    with pytest.raises(expected):
        facula.load(stream, weights_only=weights_only)


def test_protocol_0():
    stream = io.BytesIO()
    facula.save({"a": [1, 2.5, "text"], 2: (None, True)}, stream, pickle_protocol=0)
    stream.seek(0)
    assert facula.load(stream) == {"a": [1, 2.5, "text"], 2: (None, True)}
    with pytest.raises(ValueError, match="at least 1"):
        facula.save(facula.ones(1), io.BytesIO(), pickle_protocol=0)


def test_what_is_no_checkpoint():
    cases = [
        (pickle.dumps({"a": 1}, 2), RuntimeError, "magic"),
        (b"garbage", UnpicklingError, "truncated"),
        (b"", EOFError, "empty"),
    ]
    for data, error, text in cases:
        with pytest.raises(error, match=text):
            facula.load(io.BytesIO(data))
