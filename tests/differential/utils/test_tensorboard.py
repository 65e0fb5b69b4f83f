"""utils.tensorboard's files, as TensorBoard's own reader reads them."""

import pytest

facula = pytest.importorskip("facula")
accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
from facula.utils.tensorboard import SummaryWriter, summary  # noqa: E402
from same_program import outcome  # noqa: E402
from tensorboard.compat.proto import summary_pb2  # noqa: E402
from tensorboard.plugins.hparams import plugin_data_pb2  # noqa: E402


@pytest.mark.filterwarnings("ignore")
def test_tensorboard_reads_what_is_written(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        for step in range(3):
            writer.add_scalar("loss", facula.tensor(1.5) * step, step)
        writer.add_histogram("weights", facula.arange(-2.0, 3.0), 7)
        writer.add_image("picture", facula.rand(3, 4, 5), 1)
        writer.add_text("note", "hello", 2)
        writer.add_audio("sound", facula.zeros(10), 0, 8000)
    events = accumulator.EventAccumulator(str(tmp_path), {"tensors": 0})
    events.Reload()
    assert [(e.step, e.value) for e in events.Scalars("loss")] == [(0, 0.0), (1, 1.5), (2, 3.0)]
    spread = events.Histograms("weights")[0]
    assert (spread.step, spread.histogram_value.num, spread.histogram_value.sum) == (7, 5, 0)
    assert sum(spread.histogram_value.bucket) == 5
    picture = events.Images("picture")[0]
    assert (picture.width, picture.height) == (5, 4)
    assert events.Audio("sound")[0].content_type == "audio/wav"
    text = events.Tensors("note/text_summary")[0].tensor_proto
    assert text.string_val[0] == b"hello"


def hparams(summary):
    hparams_of = plugin_data_pb2.HParamsPluginData.FromString
    bytes_of = summary if isinstance(summary, bytes) else summary.SerializeToString()
    value = summary_pb2.Summary.FromString(bytes_of).value[0]
    data = value.metadata.plugin_data
    return value.tag, data.plugin_name, hparams_of(data.content)


@pytest.mark.parametrize(
    "given",
    [
        ({"lr": 0.1, "kind": "a", "flag": True, "n": 3, "none": None}, {"loss": 1.0}),
        ({"lr": 0.1, "kind": "a"}, {}, {"lr": [0.1, 0.2], "kind": ["a", "b"]}),
        ({"list": [1]}, {}),
        (1, {}),
        ({"lr": 1.0}, {}, {"lr": ["a"]}),
        ({"lr": 1.0}, {}, {"other": [1.0]}),
    ],
)
def test_parameters_of_runs_are_written_as_pytorch_writes_them(given):
    expected, found = (
        outcome(lambda f: [hparams(s) for s in f(*given)], m)
        for m in (pytest.importorskip("torch.utils.tensorboard.summary").hparams, summary.hparams)
    )
    assert found == expected


@pytest.mark.filterwarnings("ignore")
def test_a_run_s_results_stand_beside_its_parameters(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams({"lr": facula.tensor(0.1)}, {"loss": 0.5}, run_name="run", global_step=2)
    events = accumulator.EventAccumulator(str(tmp_path / "run")).Reload()
    assert [(e.step, e.value) for e in events.Scalars("loss")] == [(2, 0.5)]
    assert events.SummaryMetadata("_hparams_/experiment").plugin_data.plugin_name == "hparams"


def value_of(summary):
    bytes_of = summary if isinstance(summary, bytes) else summary.SerializeToString()
    return summary_pb2.Summary.FromString(bytes_of).value[0]


@pytest.mark.parametrize("weights", [None, 2.0])
def test_curves_of_precision_and_recall_are_pytorchs(weights):
    import numpy as np
    from tensorboard.util import tensor_util

    theirs = pytest.importorskip("torch.utils.tensorboard.summary")
    draw = np.random.RandomState(0)
    labels, predictions = draw.randint(0, 2, 50), draw.rand(50).astype(np.float32)
    given = facula.from_numpy(labels), facula.from_numpy(predictions)
    expected = value_of(theirs.pr_curve("curve", labels, predictions, 11, weights))
    found = value_of(summary.pr_curve("curve", *given, 11, weights))
    assert (found.tag, found.metadata) == (expected.tag, expected.metadata)
    numbers = [tensor_util.make_ndarray(value.tensor) for value in (found, expected)]
    np.testing.assert_allclose(*numbers, rtol=1e-6)


def test_layouts_of_charts_are_pytorchs():
    theirs = pytest.importorskip("torch.utils.tensorboard.summary")
    layout = {"a": {"t": ["Multiline", ["x", "y"]], "m": ["Margin", ["v", "l", "u"]]}, "b": {}}
    assert value_of(summary.custom_scalars(layout)) == value_of(theirs.custom_scalars(layout))


@pytest.mark.filterwarnings("ignore")
def test_tensors_and_pictures_with_boxes_are_read_back(tmp_path):
    from tensorboard.util import tensor_util

    given = {"f": facula.rand(2, 3), "d": facula.rand(2).double(), "i": facula.tensor(-3)}
    with SummaryWriter(tmp_path) as writer:
        for name, tensor in given.items():
            writer.add_tensor(name, tensor, 4)
        boxes = facula.tensor([[1.0, 1.0, 5.0, 5.0]])
        writer.add_image_with_boxes("picture", facula.zeros(3, 8, 9), boxes, labels="a", rescale=2)
    events = accumulator.EventAccumulator(str(tmp_path), {"tensors": 0}).Reload()
    for name, tensor in given.items():
        read = tensor_util.make_ndarray(events.Tensors(name)[0].tensor_proto)
        assert read.tolist() == tensor.tolist() and read.dtype == tensor.numpy().dtype
    picture = events.Images("picture")[0]
    assert (picture.height, picture.width) == (16, 18)
