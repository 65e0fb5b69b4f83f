"""Checkpoints as safetensors files: whole, in pieces, and pieces made whole."""

import json

import facula
import facula.distributed as dist
import pytest
from facula.distributed import checkpoint as dcp
from facula.distributed import threads
from facula.distributed.checkpoint._consolidate_hf_safetensors import (
    consolidate_safetensors_files,
    consolidate_safetensors_files_on_every_rank,
)
from facula.distributed.tensor import Shard, distribute_tensor
from facula.serialization.safetensors import load_file, save_file

STATE = {
    "a": facula.ones(3, dtype=facula.bfloat16),
    "b": facula.arange(6.0).view(2, 3),
    "in": {"x": facula.arange(4)},
    "scalar": facula.tensor(7),
    "view": facula.arange(12.0).view(3, 4)[1:, ::2],
}
FILES = {"a": 1, "b": 2, "in.x": 1, "scalar": 2, "view": 2}
INDEX = "model.safetensors.index.json"


def empty(value):
    if isinstance(value, dict):
        return {k: empty(v) for k, v in value.items()}
    return facula.zeros_like(value)


def numbers(value):
    return {k: numbers(v) for k, v in value.items()} if isinstance(value, dict) else value.tolist()


def loaded(folder):
    state = empty(STATE)
    dcp.load(state, storage_reader=dcp.HuggingFaceStorageReader(folder))
    return state


@pytest.mark.parametrize("mapping", [None, FILES])
@pytest.mark.parametrize("consolidated", [False, True])
def test_states_come_back(tmp_path, mapping, consolidated):
    more = {"save_distributed": True, "enable_consolidation": True} if consolidated else {}
    writer = dcp.HuggingFaceStorageWriter(tmp_path, mapping, **more)
    dcp.save(STATE, storage_writer=writer)
    assert numbers(loaded(tmp_path)) == numbers(STATE)
    if consolidated:
        assert numbers(loaded(tmp_path / "sharded")) == numbers(STATE)
    index = json.loads((tmp_path / INDEX).read_text())
    files = {f"{name.name}" for name in tmp_path.glob("*.safetensors")}
    assert set(index["weight_map"].values()) == files and len(files) == (2 if mapping else 1)
    assert index["metadata"]["total_size"] == 6 + 24 + 32 + 8 + 16
    for name in files:
        of_file = {k for k, v in index["weight_map"].items() if v == name}
        assert load_file(tmp_path / name).keys() == of_file


def test_pieces_of_ranks_become_whole_and_load_at_any_number_of_ranks(tmp_path):
    whole = {"w": facula.arange(60.0).view(10, 6), "n": facula.arange(5)}

    def save(rank):
        mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
        state = {k: distribute_tensor(v, mesh, [Shard(0)]) for k, v in whole.items()}
        mapping = {"w": 1, "n": 2}
        writer = dcp.HuggingFaceStorageWriter(tmp_path, mapping, 1, True, True, 2)
        dcp.save(state, storage_writer=writer)
        consolidate_safetensors_files_on_every_rank(
            tmp_path / "sharded", tmp_path / "again", mapping
        )

    def load(rank):
        mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
        found = []
        for folder in (tmp_path, tmp_path / "sharded", tmp_path / "again"):
            state = {k: distribute_tensor(v * 0, mesh, [Shard(0)]) for k, v in whole.items()}
            dcp.load(state, storage_reader=dcp.HuggingFaceStorageReader(folder))
            found.append(all(state[k].full_tensor().equal(v) for k, v in whole.items()))
        return found

    threads.run(save, 3)
    assert len(list((tmp_path / "sharded").iterdir())) == 6
    assert (tmp_path / INDEX).read_text() == (tmp_path / "again" / INDEX).read_text()
    assert threads.run(load, 2) == [[True] * 3] * 2


def test_files_of_others_load(tmp_path):
    save_file({"w": facula.ones(2)}, tmp_path / "model.safetensors", {"format": "pt"})
    state = {"w": facula.zeros(2, dtype=facula.float64)}
    dcp.load(state, storage_reader=dcp.HuggingFaceStorageReader(tmp_path))
    assert state["w"].tolist() == [1, 1]


def test_what_is_no_tensor_is_left_out_with_a_warning(tmp_path):
    with pytest.warns(UserWarning, match="left out: .*step"):
        writer = dcp.HuggingFaceStorageWriter(tmp_path)
        dcp.save({"w": facula.ones(2), "step": 3}, storage_writer=writer)


def save_twice(rank, folder):
    state = {"a": facula.ones(2), "b": facula.ones(2)}
    dcp.save(state, storage_writer=dcp.HuggingFaceStorageWriter(folder))


def test_what_cannot_be_written_or_read_is_told(tmp_path):
    with pytest.raises(dcp.CheckpointException, match="got none for .*'b'"):
        dcp.save(STATE, storage_writer=dcp.HuggingFaceStorageWriter(tmp_path, {"a": 1}))
    with pytest.raises(dcp.CheckpointException, match="expected files"):
        loaded(tmp_path)
    with pytest.raises(dcp.CheckpointException, match="save_distributed=True"):
        threads.run(save_twice, 2, (tmp_path,))
    sharding = {"DCP_SHARDING_INFO": '{"w": {"saved_offsets": [2]}}'}
    save_file({"w": facula.ones(2)}, tmp_path / "one.safetensors", sharding)
    with pytest.raises(ValueError, match="expected pieces of 'w' that make"):
        consolidate_safetensors_files(tmp_path, tmp_path / "out", {"w": 1})
    sharding = {"DCP_SHARDING_INFO": '{"w": {"saved_offsets": [0, -1]}}'}
    save_file({"w": facula.ones(2)}, tmp_path / "one.safetensors", sharding)
    with pytest.raises(dcp.CheckpointException, match="expected 1 offsets of 'w'"):
        state = {"w": facula.zeros(2)}
        dcp.load(state, storage_reader=dcp.HuggingFaceStorageReader(tmp_path))
