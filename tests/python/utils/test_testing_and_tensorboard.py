"""testing.assert_close and make_tensor; utils.tensorboard's files, read back by hand."""

import copy
import struct
import zlib

import facula
import pytest
from facula.testing import assert_close, make_tensor
from facula.utils.tensorboard import FileWriter, SummaryWriter
from facula.utils.tensorboard import _encoding as enc


def records(folder):
    """The messages of the only file of events in a folder, their checks verified."""
    (file,) = [path for path in folder.iterdir() if path.is_file()]
    data, found = file.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        assert struct.unpack("<I", data[8:12])[0] == enc.masked_crc32c(data[:8])
        message = data[12 : 12 + length]
        check = data[12 + length : 16 + length]
        assert struct.unpack("<I", check)[0] == enc.masked_crc32c(message)
        found.append(message)
        data = data[16 + length :]
    return found


def test_the_check_of_records_is_castagnolis():
    crc = 0xE3069283  # of "123456789", from the definition of CRC-32C
    rotated = (crc >> 15 | crc << 17) & 0xFFFFFFFF
    assert enc.masked_crc32c(b"123456789") == (rotated + 0xA282EAD8) & 0xFFFFFFFF


def test_numbers_are_in_groups_of_seven_bits():
    assert [enc.varint(n).hex() for n in (0, 127, 128, 300)] == ["00", "7f", "8001", "ac02"]
    assert len(enc.varint(-1)) == 10


def test_files_hold_what_was_written(tmp_path):
    writer = SummaryWriter(tmp_path, max_queue=100)
    writer.add_scalar("loss", facula.tensor(2.5), 3, walltime=7.0)
    writer.add_image("picture", facula.ones(1, 2, 2, dtype=facula.uint8) * 9)
    writer.flush()
    first, scalar, image = records(tmp_path)
    assert b"brain.Event:2" in first
    assert scalar[1:9] == struct.pack("<d", 7.0) and b"loss" in scalar
    assert struct.pack("<f", 2.5) in scalar
    png = image[image.index(b"\x89PNG") :]
    start = png.index(b"IDAT")
    (length,) = struct.unpack(">I", png[start - 4 : start])
    assert zlib.decompress(png[start + 4 : start + 4 + length]) == b"\0\t\t\0\t\t"
    writer.close()
    writer.add_scalar("later", 1.0)  # a writer that was closed begins another file
    writer.close()
    assert len(list(tmp_path.iterdir())) == 2


def test_scalars_together_are_runs_of_their_own(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalars("loss", {"train": 1.0, "test": 2.0}, 1)
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_dir()) == ["loss_test", "loss_train"]


def test_wrong_calls_raise(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        with pytest.raises(ValueError):
            writer.add_histogram("nothing", facula.empty(0))
        with pytest.raises(AssertionError):
            writer.add_image("picture", facula.ones(2, 2))
        with pytest.raises(NotImplementedError, match="add_onnx_graph"):
            writer.add_onnx_graph("model.onnx")
    files = FileWriter(tmp_path / "new")
    assert files.get_logdir() == str(tmp_path / "new")
    files.close()


def test_differences_are_described():
    with pytest.raises(AssertionError, match=r"item \['a'\]\[1\]"):
        assert_close({"a": [1.0, 2.0]}, {"a": [1.0, 3.0]})
    with pytest.raises(AssertionError, match=r"Mismatched elements: 1 / 2 \(50.0%\)"):
        assert_close(facula.tensor([1.0, 2.0]), facula.tensor([1.0, 2.5]))
    with pytest.raises(ValueError, match="atol"):
        assert_close(1.0, 1.0, rtol=1.0)
    assert_close(facula.tensor([1.0], dtype=facula.float16), facula.tensor([1.0009]).half())


@pytest.mark.parametrize("dtype", [facula.float32, facula.int32, facula.bool, facula.complex64])
def test_made_tensors_are_as_asked_for(dtype):
    made = make_tensor(3, 4, dtype=dtype, device="cpu", noncontiguous=True)
    assert made.shape == (3, 4) and made.dtype == dtype and not made.is_contiguous()
    with pytest.raises(ValueError):
        make_tensor(3, dtype=dtype, device="cpu", low=2, high=1)


def test_a_graph_leaves_the_model_as_it_was(tmp_path, capsys):
    model = facula.nn.Sequential(facula.nn.Linear(3, 2), facula.nn.BatchNorm1d(2))
    model[0].eval()
    before = copy.deepcopy(model.state_dict())
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(model, facula.ones(4, 3), verbose=True)
    shown = capsys.readouterr().out
    assert "Sequential/Linear[0]/weight/weight" in shown
    assert "aten::linear(input/input, Sequential/Linear[0]/weight/weight" in shown
    assert [m.training for m in model.modules()] == [True, False, True]
    assert not model[0]._forward_hooks and not model[0]._forward_pre_hooks
    assert all((before[key] == value).all() for key, value in model.state_dict().items())


WRONG_SUMMARIES = {
    "no module": (lambda w: w.add_graph(3, facula.ones(1)), AttributeError, "Module"),
    "no inputs": (lambda w: w.add_graph(facula.nn.Linear(2, 2)), RuntimeError, "inputs"),
    "wrong inputs": (
        lambda w: w.add_graph(facula.nn.Linear(2, 2), facula.ones(3, 5)),
        RuntimeError,
        "running the model failed",
    ),
    "mesh": (lambda w: w.add_mesh("m", facula.ones(3, 3)), ValueError, r"\(B, N, 3\)"),
    "video": (lambda w: w.add_video("v", facula.ones(2, 3, 4, 4)), ValueError, "N, T, C, H, W"),
    "points": (lambda w: w.add_embedding(facula.ones(3)), AssertionError, r"\(N, D\)"),
    "labels": (lambda w: w.add_embedding(facula.ones(3, 2), ["a"]), AssertionError, "3 labels"),
    "pictures": (
        lambda w: w.add_embedding(facula.ones(1, 2), None, facula.ones(1, 4, 4)),
        AssertionError,
        "N, 3, H, W",
    ),
    "header": (
        lambda w: w.add_embedding(facula.ones(1, 2), [["a"]], metadata_header=["x", "y"]),
        AssertionError,
        "metadata_header",
    ),
}


@pytest.mark.parametrize("name", WRONG_SUMMARIES)
def test_wrong_summaries_say_what_was_expected(tmp_path, name):
    call, error, text = WRONG_SUMMARIES[name]
    with SummaryWriter(tmp_path) as writer, pytest.raises(error, match=text):
        call(writer)
