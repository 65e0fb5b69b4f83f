"""Storages as sequences of bytes and as elements of a dtype; files; tensors over them."""

import copy
import io
import pickle

import facula
import pytest

F = facula


def _raises(f):
    try:
        return f()
    except Exception as error:
        return type(error)


def _bytes():
    return facula.arange(6, dtype=facula.uint8).untyped_storage()


def _floats():
    return facula.arange(6.0).storage()


def _changed(storage, key, value):
    storage[key] = value
    return storage.tolist()


BYTES = [
    (lambda: _bytes()[2:4].tolist(), [2, 3]),
    (lambda: type(_bytes()[2:4]), facula.UntypedStorage),
    (lambda: _bytes()[4:2].nbytes(), 0),
    (lambda: _bytes()[-2:].tolist(), [4, 5]),
    (lambda: _bytes()[-1], 5),
    (lambda: _bytes()[6], IndexError),
    (lambda: _bytes()[::2], RuntimeError),
    (lambda: _bytes()["a"], TypeError),
    (lambda: _bytes()[1.5], TypeError),
    (lambda: list(_bytes()), [0, 1, 2, 3, 4, 5]),
    (lambda: _changed(_bytes(), 0, 300), [44, 1, 2, 3, 4, 5]),
    (lambda: _changed(_bytes(), slice(1, 3), 9), [0, 9, 9, 3, 4, 5]),
    (lambda: _changed(_bytes(), slice(0, 4, 2), 9), RuntimeError),
    (lambda: _changed(_bytes(), 0, 1.5), RuntimeError),
    (lambda: repr(_bytes()[:2]), " 0\n 1\n[torch.storage.UntypedStorage(device=cpu) of size 2]"),
    (lambda: _bytes().new().nbytes(), 0),
    (lambda: _bytes().float().tolist(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
    (lambda: _bytes().bool().tolist(), [False, True, True, True, True, True]),
    (lambda: _bytes().type(), "torch.storage.UntypedStorage"),
    (lambda: facula.UntypedStorage([1, 2]).tolist(), [1, 2]),
    (lambda: facula.UntypedStorage([1.5]), RuntimeError),
    (lambda: _bytes().resize_("a"), RuntimeError),
    (lambda: _bytes().resize_(-1), RuntimeError),
    (lambda: _bytes().copy_(facula.UntypedStorage(2)), RuntimeError),
    (lambda: facula.UntypedStorage.from_buffer(b"abc", dtype=facula.uint8).tolist(), [97, 98, 99]),
    (
        lambda: facula.UntypedStorage.from_buffer(
            bytes(range(8)), "big", 2, 2, dtype=facula.int16
        ).tolist(),
        [3, 2, 5, 4],
    ),
    (lambda: facula.UntypedStorage.from_buffer(b"ab", "big", 4, dtype=facula.int16), ValueError),
    (lambda: facula.UntypedStorage.from_buffer(b"ab", dtype=facula.int16), RuntimeError),
    (lambda: facula.UntypedStorage.from_buffer(b"ab"), RuntimeError),
    (lambda: _bytes()[True], TypeError),
    (lambda: _changed(_bytes(), 9, 1), RuntimeError),
    (lambda: _changed(_bytes(), "a", 1), RuntimeError),
    (lambda: _changed(_bytes(), -1, 9), [0, 1, 2, 3, 4, 9]),
    (lambda: _bytes().fill_(1.5), RuntimeError),
    (lambda: _bytes().copy_(3), TypeError),
    (lambda: facula.UntypedStorage(4).copy_(facula.ones(1).storage()).tolist(), [0, 0, 128, 63]),
    (lambda: facula.UntypedStorage(True), RuntimeError),
    (lambda: facula.UntypedStorage({1, 2}), RuntimeError),
    (lambda: facula.UntypedStorage(3, 4), TypeError),
    (lambda: facula.UntypedStorage(sequence=[1]).tolist(), [1]),
    (lambda: _bytes().to(device="cpu").tolist(), [0, 1, 2, 3, 4, 5]),
    (lambda: _bytes().to("cpu"), TypeError),
    (lambda: _bytes().cuda(), RuntimeError),
    (lambda: _bytes().type(int), AttributeError),
    (lambda: isinstance(_bytes(), facula.storage._StorageBase), True),
    (lambda: facula.typename(_bytes()), "facula.storage.UntypedStorage"),
    (lambda: repr(_bytes()[:0]), " \n[torch.storage.UntypedStorage(device=cpu) of size 0]"),
]


@pytest.mark.parametrize("case", range(len(BYTES)))
def test_untyped(case):
    run, expected = BYTES[case]
    assert _raises(run) == expected


TYPED = [
    (lambda: _floats()[-1], 5.0),
    (lambda: _floats()[1:3], RuntimeError),
    (lambda: _floats()[True], TypeError),
    (lambda: list(_floats())[:2], [0.0, 1.0]),
    (lambda: _floats().to(device="cpu") == _floats(), False),
    (lambda: (lambda s: s.to(device="cpu") == s)(_floats()), True),
    (lambda: _floats()._resize_(1), None),
    (lambda: F.FloatStorage(True).size(), 1),
    (lambda: F.FloatStorage(foo=1), TypeError),
    (lambda: F.FloatStorage.from_buffer(b"abcd", "native", dtype=F.int8), RuntimeError),
    (lambda: F.ByteStorage.from_buffer(b"ab", byte_order="any").tolist(), [97, 98]),
    (lambda: issubclass(F.FloatStorage, F.storage._LegacyStorage), True),
    (lambda: pickle.loads(pickle.dumps(F.FloatStorage)) is F.FloatStorage, True),
    (lambda: F.ones(1).storage_type() is F.FloatStorage, True),
    (lambda: F.ones(3, device="meta").storage().type(), "torch.storage.TypedStorage"),
    (lambda: (lambda s: s == s)(F.ones(3, device="meta").storage()), True),
    (lambda: _floats()[6], IndexError),
    (lambda: _floats()["a"], RuntimeError),
    (lambda: _changed(_floats(), slice(1, 3), 9), [0.0, 9.0, 9.0, 3.0, 4.0, 5.0]),
    (lambda: _changed(_floats(), -1, 2.5), [0.0, 1.0, 2.0, 3.0, 4.0, 2.5]),
    (lambda: _changed(_floats(), 0, "a"), TypeError),
    (lambda: (len(_floats()), _floats().nbytes(), _floats().element_size()), (6, 24, 4)),
    (lambda: _floats().long().tolist(), [0, 1, 2, 3, 4, 5]),
    (lambda: _floats().complex_float().dtype, facula.complex64),
    (lambda: _floats().type(), "torch.FloatStorage"),
    (lambda: _floats().fill_(3).tolist(), [3.0] * 6),
    (lambda: F.zeros(2).storage().copy_(F.ones(2).untyped_storage()).tolist(), [1.0, 1.0]),
    (lambda: F.zeros(2).storage().copy_(F.ones(3).storage()), RuntimeError),
    (lambda: (lambda s: s.clone().data_ptr() == s.data_ptr())(_floats()), False),
    (lambda: F.FloatStorage(3).size(), 3),
    (lambda: F.FloatStorage([1, 2]).tolist(), [1.0, 2.0]),
    (lambda: F.FloatStorage(range(2)).tolist(), [0.0, 1.0]),
    (lambda: F.FloatStorage("a"), TypeError),
    (lambda: F.FloatStorage(F.arange(2.0)), TypeError),
    (lambda: F.FloatStorage(1, 2), RuntimeError),
    (lambda: F.FloatStorage(1, dtype=F.float64), RuntimeError),
    (lambda: F.FloatStorage(wrap_storage=F.ones(2).untyped_storage()).tolist(), [1.0, 1.0]),
    (lambda: F.BoolStorage([True, False]).tolist(), [True, False]),
    (lambda: F.ComplexFloatStorage([1j]).tolist(), [1j]),
    (lambda: isinstance(_floats(), F.FloatStorage), True),
    (lambda: isinstance(_floats(), F.LongStorage), False),
    (lambda: isinstance(F.FloatStorage(1), F.TypedStorage), True),
    (lambda: repr(F.FloatStorage), "<class 'torch.FloatStorage'>"),
    (lambda: F.TypedStorage([1, 2], dtype=F.int32).tolist(), [1, 2]),
    (lambda: F.TypedStorage(wrap_storage=3, dtype=F.float32), TypeError),
    (lambda: F.TypedStorage(wrap_storage=F.ones(2).untyped_storage()), RuntimeError),
    (lambda: F.TypedStorage(2, dtype=3), RuntimeError),
    (lambda: pickle.loads(pickle.dumps(_floats())).tolist(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
    (
        lambda: F.FloatStorage.from_buffer(F.arange(2.0).numpy().tobytes(), "little").tolist(),
        [0.0, 1.0],
    ),
]


@pytest.mark.parametrize("case", range(len(TYPED)))
def test_typed(case):
    run, expected = TYPED[case]
    assert _raises(run) == expected


TENSORS = [
    (lambda: F.zeros(2).set_(F.FloatStorage([1, 2, 3])).tolist(), [1.0, 2.0, 3.0]),
    (lambda: F.zeros(2).set_(F.arange(3.0).untyped_storage()).tolist(), [0.0, 1.0, 2.0]),
    (lambda: F.zeros(2).set_(source=F.arange(3.0).untyped_storage()).tolist(), [0.0, 1.0, 2.0]),
    (lambda: F.zeros(2).set_(F.arange(3.0).untyped_storage(), 1, (2,)).tolist(), [1.0, 2.0]),
    (lambda: F.zeros(2).set_(F.arange(3.0).storage(), 1, (2,), (1,)).tolist(), [1.0, 2.0]),
    (lambda: F.zeros(2).set_(F.arange(3).storage()), RuntimeError),
    (lambda: F.zeros(2).set_(F.UntypedStorage(8), 0, (5,)).untyped_storage().nbytes(), 20),
    (lambda: F.zeros(2).set_(F.ones(2).untyped_storage(), -1, (5,)), RuntimeError),
    (lambda: F.zeros(2).set_(F.arange(3)), RuntimeError),
    (lambda: F.zeros(2).set_(F.arange(6.0), 1, (2, 2), (2, 1)).tolist(), [[1.0, 2.0], [3.0, 4.0]]),
    (
        lambda: F.asarray(F.arange(3.0).untyped_storage(), dtype=F.float32).tolist(),
        [0.0, 1.0, 2.0],
    ),
    (lambda: F.asarray(F.arange(3.0).storage()).tolist(), [0.0, 1.0, 2.0]),
    (lambda: F.tensor(F.arange(3.0).storage()).tolist(), [0.0, 1.0, 2.0]),
    (lambda: F.as_tensor(F.arange(3.0).storage()).tolist(), [0.0, 1.0, 2.0]),
    (lambda: F.Tensor(F.arange(3.0).storage()).tolist(), [0.0, 1.0, 2.0]),
    (lambda: F.Tensor(F.arange(3).storage()), RuntimeError),
    (lambda: F.FloatTensor(F.arange(3.0).untyped_storage()).tolist(), [0.0, 1.0, 2.0]),
    (lambda: F.LongTensor(F.arange(3.0).storage()), RuntimeError),
    (lambda: F.zeros(1).new(F.arange(3.0).storage()).tolist(), [0.0, 1.0, 2.0]),
    (lambda: F.zeros(2).type(F.LongTensor).dtype, F.int64),
    (lambda: F.zeros(2, dtype=F.int32).type(F.Tensor).dtype, F.float32),
    (lambda: F.zeros(2).type(int), ValueError),
]


@pytest.mark.parametrize("case", range(len(TENSORS)))
def test_tensors_over_storages(case):
    run, expected = TENSORS[case]
    assert _raises(run) == expected


def test_asarray_shares():
    storage = facula.zeros(3).untyped_storage()
    facula.asarray(storage, dtype=facula.float32).fill_(1)
    assert facula.zeros(0).set_(storage).tolist() == [1.0, 1.0, 1.0]


def test_slices_share():
    x = facula.zeros(4, dtype=facula.uint8)
    part = x.untyped_storage()[1:3]
    part.fill_(7)
    assert x.tolist() == [0, 7, 7, 0]
    assert not part.resizable()


@pytest.mark.parametrize("storage", [lambda a: a.storage(), lambda a: a.untyped_storage()])
@pytest.mark.parametrize("order", [1, -1])
def test_deepcopy_keeps_sharing(storage, order):
    a = facula.arange(3.0)
    pair = [a, storage(a)][::order]
    b, s = copy.deepcopy(pair)[::order]
    assert b.untyped_storage()._cdata == s._cdata != a.untyped_storage()._cdata
    assert b.tolist() == a.tolist()


def test_files(tmp_path):
    path = str(tmp_path / "bytes")
    shared = facula.UntypedStorage.from_file(path, shared=True, nbytes=16)
    shared.fill_(3)
    assert (shared.is_shared(), shared.filename, shared.resizable()) == (True, path, False)
    own = facula.UntypedStorage.from_file(path, nbytes=8)
    assert (own.tolist(), own.is_shared(), own.filename) == ([3] * 8, False, None)
    own.fill_(9)
    assert shared[0] == 3
    x = facula.from_file(path, shared=True, size=4, dtype=facula.int32)
    x.fill_(5)
    assert facula.IntStorage.from_file(path, False, 4).tolist() == [5] * 4
    assert x.is_shared()
    assert facula.UntypedStorage.from_file(path).nbytes() == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda path: facula.UntypedStorage.from_file(path, nbytes=100),
        lambda path: facula.UntypedStorage.from_file(path + "x", nbytes=1),
        lambda path: facula.from_file(path, size=200, dtype=facula.uint8),
    ],
)
def test_files_that_do_not_do(tmp_path, make):
    path = tmp_path / "short"
    path.write_bytes(b"abc")
    with pytest.raises(RuntimeError, match="file"):
        make(str(path))


def test_write_file(tmp_path):
    path = tmp_path / "s"
    storage = _floats()
    with open(path, "wb") as file:
        storage._write_file(file, True, True, 4)
    assert path.read_bytes() == (6).to_bytes(8, "little") + bytes(storage.untyped())
    back = F.FloatStorage(6)
    with open(path, "rb") as file:
        back._set_from_file(file, None, True, 4)
        assert back.tolist() == storage.tolist()
        with pytest.raises(RuntimeError, match="expected 3 elements"):
            F.FloatStorage(3)._set_from_file(file, 0, True, 4)


def test_pickles_of_pytorch_s_storages():
    stream = io.BytesIO()
    facula.save(_floats(), stream, _use_new_zipfile_serialization=False)
    assert F.storage._load_from_bytes(stream.getvalue()).tolist() == _floats().tolist()
