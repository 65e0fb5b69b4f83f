"""Checkpoints that PyTorch saves load here, and the other way round."""

import subprocess
import sys

import facula
import facula.distributed.checkpoint as ours
import pytest
import torch
import torch.distributed.checkpoint as theirs
from leaving_ranks import LEAVE

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


RANK = """
import importlib, sys
name, job, rank, size, folder = *sys.argv[1:3], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
m = importlib.import_module(name)
dist = importlib.import_module(name + ".distributed")
checkpoint = importlib.import_module(name + ".distributed.checkpoint")
tensor = importlib.import_module(name + ".distributed.tensor")
dist.init_process_group("gloo", init_method=f"file://{folder}/{name}{job}", rank=rank,
                        world_size=size)
mesh = dist.init_device_mesh("cpu", (size,))
numbers = m.arange(60.0).view(10, 6)
spread = lambda x, dim: tensor.distribute_tensor(x, mesh, [tensor.Shard(dim)])
if job == "save":
    checkpoint.save({"w": spread(numbers, 0), "n": 5}, checkpoint_id=folder + "/saved")
else:
    state = {"w": spread(m.zeros(10, 6), 1), "n": 0}
    checkpoint.load(state, checkpoint_id=folder + "/saved")
    assert state["w"].full_tensor().equal(numbers) and state["n"] == 5
"""


def run_ranks(name, job, size, folder):
    program = [sys.executable, "-W", "ignore", "-c", RANK + LEAVE]
    commands = [[*program, name, job, str(r), str(size), str(folder)] for r in range(size)]
    processes = [subprocess.Popen(c, stderr=subprocess.PIPE, text=True) for c in commands]
    errors = [p.communicate(timeout=120)[1] for p in processes]
    assert [p.returncode for p in processes] == [0] * size, "\n".join(errors)


@pytest.mark.parametrize("saver, loader", [("torch", "facula"), ("facula", "torch")])
def test_parts_of_several_ranks_go_over(saver, loader, tmp_path):
    run_ranks(saver, "save", 3, tmp_path)
    run_ranks(loader, "load", 2, tmp_path)


@pytest.mark.parametrize("more", [{}, {"save_distributed": True, "enable_consolidation": True}])
@pytest.mark.parametrize("saver, loader", [((torch, theirs), (facula, ours)),
                                           ((facula, ours), (torch, theirs))])  # fmt: skip
def test_either_side_reads_safetensors_of_the_other(saver, loader, more, tmp_path):
    pytest.importorskip("safetensors", reason="PyTorch writes the format by this package")

    def tensors(m, filled):
        make = m.ones if filled else m.zeros
        return {"in": {"w": make(3, 4), "half": make(5, dtype=m.bfloat16)}, "v": make(4, 6)[1:]}

    m, checkpoint = saver
    writer = checkpoint.HuggingFaceStorageWriter(str(tmp_path), **more)
    checkpoint.save(tensors(m, True), storage_writer=writer, no_dist=True)
    m, checkpoint = loader
    for folder in [tmp_path, *tmp_path.glob("sharded")]:
        found = tensors(m, False)
        reader = checkpoint.HuggingFaceStorageReader(str(folder))
        checkpoint.load(found, storage_reader=reader, no_dist=True)
        assert numbers(found) == numbers(tensors(m, True))
