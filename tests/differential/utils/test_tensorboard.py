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


def test_meshes_are_pytorchs():
    torch = pytest.importorskip("torch")
    theirs = pytest.importorskip("torch.utils.tensorboard.summary")
    given = [[[0.0, 1, 2], [3, 4, 5], [6, 7, 8]]], [[[1.0, 2, 3]] * 3], [[[0.0, 1, 2]]]
    camera = {"camera": {"cls": "PerspectiveCamera", "fov": 75}}
    for arguments in ((given[0], None, None, None), (*given, camera)):

        def made(lib, function, *more, arguments=arguments):
            tensors = [lib.tensor(part) if isinstance(part, list) else part for part in arguments]
            return function("m", *tensors, *more)

        expected = made(torch, theirs.mesh, None, None).value
        found = summary_pb2.Summary.FromString(made(facula, summary.mesh)).value
        assert [str(value.metadata) for value in found] == [str(v.metadata) for v in expected]
        assert [(v.tag, v.tensor) for v in found] == [(v.tag, v.tensor) for v in expected]


def test_points_for_the_projector_are_written_as_pytorch_writes_them(tmp_path):
    torch = pytest.importorskip("torch")
    from torch.utils.tensorboard import SummaryWriter as TheirWriter

    files = {}
    for lib, make in ((facula, SummaryWriter), (torch, TheirWriter)):
        folder = tmp_path / lib.__name__
        points = lib.arange(6.0).reshape(3, 2) / 4
        pictures = (lib.arange(3 * 3 * 4 * 5.0) / 180).reshape(3, 3, 4, 5)
        with make(folder) as writer:
            writer.add_embedding(points, ["a", "b", "c"], pictures, 7, "t/x")
            writer.add_embedding(points[:2], [["a", 1], ["b", 2]], metadata_header=["n", "k"])
            writer.add_embedding(points, tag="plain")
        found = [path for path in folder.rglob("*") if path.suffix in (".tsv", ".pbtxt")]
        files[lib] = {str(path.relative_to(folder)): path.read_text() for path in found}
        pixels = pytest.importorskip("PIL.Image").open(folder / "00007/t%2fx/sprite.png")
        files[lib]["sprite"] = pixels.size, pixels.convert("RGB").tobytes()
    assert files[facula] == files[torch]


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_videos_stand_side_by_side_as_pytorch_puts_them(count):
    np = pytest.importorskip("numpy")
    arrange = pytest.importorskip("torch.utils.tensorboard._utils")._prepare_video
    shape = (count, 2, 3, 4, 5)
    videos = facula.arange(count * 120).view(shape)
    expected = arrange(np.arange(count * 120.0).reshape(shape))
    assert summary._side_by_side(videos).tolist() == expected.tolist()


def test_videos_are_read_back(tmp_path):
    import io

    images = pytest.importorskip("PIL.Image")
    frames = facula.zeros(1, 3, 3, 8, 6)
    frames[0, 1] = 1
    value = value_of(summary.video("v", frames, fps=5))
    assert (value.image.height, value.image.width, value.image.colorspace) == (8, 6, 3)
    gif = images.open(io.BytesIO(value.image.encoded_image_string))
    assert (gif.n_frames, gif.info["duration"]) == (3, 200)
    gif.seek(1)
    assert gif.convert("RGB").getpixel((0, 0)) == (255, 255, 255)


def network(lib):
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(1, 2, 3)
            self.rest = nn.Sequential(nn.Flatten(), nn.Linear(72, 3))
            self.scale = nn.Parameter(lib.ones(3))

        def forward(self, x, shift):
            return lib.relu(self.rest(self.conv(x))) * self.scale + shift, x

    return Net(), (lib.ones(1, 1, 8, 8), lib.ones(3))


def graph_nodes(folder):
    from tensorboard.compat.proto import config_pb2, graph_pb2

    events = accumulator.EventAccumulator(str(folder)).Reload()
    assert events.Tags()["run_metadata"] == ["step1"]
    ran = config_pb2.RunMetadata.FromString(events.RunMetadata("step1").SerializeToString())
    devices = [stats.device for stats in ran.step_stats.dev_stats]
    graph = graph_pb2.GraphDef.FromString(events.Graph().SerializeToString())
    return graph.node, devices, graph.versions.producer


@pytest.mark.filterwarnings("ignore")
def test_graphs_have_the_operators_and_scopes_of_pytorchs(tmp_path):
    torch = pytest.importorskip("torch")
    from torch.utils.tensorboard import SummaryWriter as TheirWriter

    found = {}
    for lib, make in ((facula, SummaryWriter), (torch, TheirWriter)):
        with make(tmp_path / lib.__name__) as writer:
            writer.add_graph(*network(lib))
        nodes, *rest = graph_nodes(tmp_path / lib.__name__)
        names = {node.name for node in nodes}
        assert all(source in names for node in nodes for source in node.input if lib is facula)
        calls = [n for n in nodes if n.op.startswith("aten::") or n.name.startswith("input/")]
        renamed = {"aten::_convolution": "aten::conv2d"}
        found[lib] = (
            [
                (
                    node.name.rpartition("/")[0],
                    renamed.get(node.op, node.op),
                    str(node.attr["_output_shapes"].list.shape),
                )
                for node in calls
            ],
            rest,
        )
        parameters = sorted(n.name.rpartition("/")[0] for n in nodes if n.op == "prim::GetAttr")
        found[lib] += ([name for name in parameters if name.rpartition("/")[2] in "weight bias"],)
    assert found[facula] == found[torch]
