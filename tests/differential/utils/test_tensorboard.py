"""utils.tensorboard's files, as TensorBoard's own reader reads them."""

import pytest

facula = pytest.importorskip("facula")
accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
from facula.utils.tensorboard import SummaryWriter  # noqa: E402


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
