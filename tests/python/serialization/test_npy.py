"""`.npy` and `.npz`: written and read without NumPy, and beside it where it is installed."""

import io
import struct
import zipfile

import facula
import pytest
from facula.serialization.npy import _KINDS, load_npy, load_npz, save_npy, save_npz

SHAPES = [(), (0,), (3,), (2, 0, 3), (2, 3), (2, 1, 4)]


def made(shape, dtype):
    count = 1
    for extent in shape:
        count *= extent
    return facula.arange(count).reshape(shape).to(dtype)


def written(tensor):
    file = io.BytesIO()
    save_npy(tensor, file)
    return file.getvalue()


@pytest.mark.parametrize("name", _KINDS.values())
def test_every_dtype_and_shape_comes_back(name):
    for shape in SHAPES:
        tensor = made(shape, getattr(facula, name))
        back = load_npy(io.BytesIO(written(tensor)))
        assert back.dtype == tensor.dtype and back.shape == tensor.shape
        assert back.tolist() == tensor.tolist()


@pytest.mark.parametrize("name", _KINDS.values())
def test_numpy_reads_and_writes_the_same_bytes(name):
    numpy = pytest.importorskip("numpy")
    for shape in SHAPES:
        tensor = made(shape, getattr(facula, name))
        file = io.BytesIO()
        numpy.save(file, tensor.numpy())
        assert written(tensor) == file.getvalue()
        assert numpy.load(io.BytesIO(written(tensor))).tolist() == tensor.tolist()


def test_numpys_other_orders():
    numpy = pytest.importorskip("numpy")
    array = numpy.arange(24.0).reshape(2, 3, 4)
    for stored in (numpy.asfortranarray(array), array.astype(">f8"), array.astype(">c8")):
        file = io.BytesIO()
        numpy.save(file, stored)
        back = load_npy(io.BytesIO(file.getvalue()))
        assert back.tolist() == stored.tolist()
    file = io.BytesIO()
    numpy.save(file, numpy.asfortranarray(array))
    assert load_npy(io.BytesIO(file.getvalue())).stride() == (1, 2, 6)
    mapped = facula.from_numpy(numpy.load(io.BytesIO(file.getvalue())))
    assert mapped.stride() == (1, 2, 6)


@pytest.mark.parametrize("compress", [False, True])
def test_archives(compress, tmp_path):
    tensors = {"a": facula.arange(6).reshape(2, 3), "b/c": facula.tensor(True)}
    save_npz(tensors, tmp_path / "x.npz", compress=compress)
    back = load_npz(tmp_path / "x.npz")
    assert {k: v.tolist() for k, v in back.items()} == {"a": [[0, 1, 2], [3, 4, 5]], "b/c": True}
    save_npz({}, tmp_path / "none.npz")
    assert load_npz(tmp_path / "none.npz") == {}


@pytest.mark.parametrize("save", ["savez", "savez_compressed"])
def test_numpys_archives_both_ways(save, tmp_path):
    numpy = pytest.importorskip("numpy")
    getattr(numpy, save)(tmp_path / "n.npz", a=numpy.ones((2, 2)), b=numpy.arange(3))
    back = load_npz(tmp_path / "n.npz")
    assert back["a"].tolist() == [[1, 1], [1, 1]] and back["b"].tolist() == [0, 1, 2]
    save_npz(back, tmp_path / "f.npz", compress=save != "savez")
    with numpy.load(tmp_path / "f.npz") as archive:
        assert archive["a"].dtype == numpy.float64 and archive["b"].tolist() == [0, 1, 2]


def with_header(text, data=b""):
    text = text.encode("latin1")
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + data


GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
BAD = {
    "empty": b"",
    "no magic": b"NUMPY" * 20,
    "version": b"\x93NUMPY\7\0" + bytes(100),
    "cut header": with_header(GOOD)[:-3],
    "cut array": with_header(GOOD, b"1234567"),
    "long header": b"\x93NUMPY\2\0\xff\xff\xff\x7f" + bytes(100),
    "objects": with_header(GOOD.replace("<f4", "|O"), bytes(16)),
    "records": with_header(GOOD.replace("'<f4'", "[('a', '<f4')]"), bytes(16)),
    "code": with_header(GOOD.replace("(2,)", "(__import__('os'),)"), bytes(16)),
    "huge": with_header(GOOD.replace("(2,)", "(9999999999, 9999999999)"), bytes(16)),
    "more than fits": with_header(GOOD.replace("(2,)", "(99999999999999999999999,)"), bytes(16)),
    "many dimensions": with_header(GOOD.replace("(2,)", "(" + "1," * 100 + ")"), bytes(16)),
    "twice": with_header(GOOD.replace("{", "{'descr': '<f4', "), bytes(8)),
    "half a dict": with_header("{'descr': '<f4'}", bytes(8)),
    "nested": with_header("(" * 5000, bytes(8)),
}


@pytest.mark.parametrize("what", BAD)
def test_damaged_files_raise(what):
    with pytest.raises(ValueError, match="not a whole .npy file"):
        load_npy(io.BytesIO(BAD[what]))


def test_damaged_archives_raise():
    with pytest.raises(RuntimeError, match="zip archive"):
        load_npz(io.BytesIO(b"PK\3\4" + bytes(50)))
    file = io.BytesIO()
    save_npz({"a": facula.arange(100)}, file)
    data = bytearray(file.getvalue())
    data[300] ^= 1
    with pytest.raises(RuntimeError, match="checksum"):
        load_npz(io.BytesIO(data))
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", bytes(200 << 20))
    with pytest.raises(RuntimeError, match="claims"):
        load_npz(bomb)


def test_what_the_format_lacks():
    for value in (facula.ones(2, dtype=facula.bfloat16), [1], None):
        with pytest.raises(ValueError, match="save_npy"):
            save_npy(value, io.BytesIO())


def test_a_view_is_written_as_its_own_elements(tmp_path):
    whole = facula.arange(12).reshape(3, 4)
    for view in (whole[1], whole.t(), whole[:, ::2]):
        save_npy(view, tmp_path / "v.npy")
        assert load_npy(tmp_path / "v.npy").tolist() == view.tolist()
    conjugate = facula.tensor([1 + 2j]).conj()
    assert load_npy(io.BytesIO(written(conjugate))).tolist() == [1 - 2j]
