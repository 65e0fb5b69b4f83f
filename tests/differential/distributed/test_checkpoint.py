"""Checkpoints that PyTorch saves load here, and the other way round."""

import facula
import facula.distributed.checkpoint as ours
import pytest
import torch
import torch.distributed.checkpoint as theirs

pytestmark = pytest.mark.filterwarnings("ignore")
DTYPES = ("float32", "bfloat16", "int64", "bool", "complex64")


def state(m, filled):
    make = m.ones if filled else m.zeros
    return {
        "model": {"w": make(3, 4), "views": make(4, 6)[1:, ::2], "t": make(2, 5).t()},
        "dtypes": {name: make(3, dtype=getattr(m, name)) for name in DTYPES},
        "optimizer": {"state": {0: {"step": make(())}}, "groups": [{"lr": 0.5 * filled}]},
        "plain": [1 * filled, "text", None, (1, 2)],
        "scalar": make(()),
        "empty": make(0, 2),
    }


def numbers(value):
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {k: numbers(v) for k, v in value.items()}
    return [numbers(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("saver, loader", [((torch, theirs), (facula, ours)),
                                           ((facula, ours), (torch, theirs))])  # fmt: skip
def test_either_side_reads_the_other(saver, loader, tmp_path):
    m, checkpoint = saver
    checkpoint.save(state(m, True), checkpoint_id=tmp_path)
    m, checkpoint = loader
    found = state(m, False)
    checkpoint.load(found, checkpoint_id=tmp_path)
    assert numbers(found) == numbers(state(m, True))


def test_metadata_says_the_same(tmp_path):
    texts = []
    for m, checkpoint in ((torch, theirs), (facula, ours)):
        checkpoint.save(state(m, True), checkpoint_id=tmp_path / m.__name__)
        metadata = checkpoint.FileSystemReader(tmp_path / m.__name__).read_metadata()
        texts.append(f"{metadata.state_dict_metadata} {metadata.planner_data}")
        assert metadata.version == "1.0.0"
    assert texts[0] == texts[1].replace("facula.", "torch.")
