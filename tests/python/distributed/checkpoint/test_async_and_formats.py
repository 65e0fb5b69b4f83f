"""Saving beside training, and checkpoints as single files."""

import subprocess
import sys

import facula
import facula.distributed as dist
import pytest
from facula.distributed import checkpoint as dcp
from facula.distributed import threads
from facula.distributed.checkpoint import format_utils, staging
from facula.distributed.checkpoint._saving_process import SavingProcess
from facula.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType
from facula.distributed.tensor import Shard, distribute_tensor

STATE = {"model": {"w": facula.arange(6.0), "l": [facula.ones(2), 3]}, "step": 4}


def equal(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(v, b[k]) for k, v in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(equal, a, b))
    return a.equal(b) if isinstance(a, facula.Tensor) else a == b


def test_what_is_saved_is_the_state_at_the_call(tmp_path):
    def work(rank):
        w = facula.full((1000,), 1.0)
        first = dcp.async_save({"w": w, "step": 1}, checkpoint_id=tmp_path / "1")
        for step in range(2, 5):  # training goes on, with calls of its own
            w.fill_(step)
            dist.all_reduce(w)
        second = dcp.async_save({"w": w, "step": 2}, checkpoint_id=tmp_path / "2")
        first.result(), second.result()
        found = {"w": facula.zeros(1000), "step": 0}
        dcp.load(found, checkpoint_id=tmp_path / "1")
        return found["w"].unique().tolist(), found["step"]

    assert threads.run(work, 2) == [([1.0], 1)] * 2


def test_errors_come_with_the_result(tmp_path):
    (tmp_path / "file").write_text("no folder")
    future = dcp.async_save({"w": facula.ones(1)}, checkpoint_id=tmp_path / "file")
    with pytest.raises(dcp.CheckpointException, match="file"):
        future.result()
    with pytest.raises(TypeError, match="expected an AsyncCheckpointerType; got str"):
        dcp.async_save({}, checkpoint_id=tmp_path, async_checkpointer_type="process")


def save_by_processes(rank, folder):
    """Two states by processes, the second into a place where no folder can be."""
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    w = facula.arange(6.0)
    cut = distribute_tensor(w.clone(), mesh, [Shard(0)])
    kind = AsyncCheckpointerType.PROCESS
    state = {"w": w, "cut": cut, "step": 1}
    first = dcp.async_save(state, checkpoint_id=folder / "1", async_checkpointer_type=kind)
    w.zero_()
    dist.all_reduce(w)
    second = dcp.async_save(state, checkpoint_id=folder / "no", async_checkpointer_type=kind)
    first.result()
    found = {"w": facula.zeros(6), "cut": facula.zeros(6), "step": 0}
    dcp.load(found, checkpoint_id=folder / "1")
    with pytest.raises(dcp.CheckpointException, match="no"):
        second.result()
    return found["w"].tolist(), found["cut"].tolist(), found["step"]


def test_processes_save_what_the_state_was_at_the_call(tmp_path):
    (tmp_path / "no").write_text("no folder")
    expected = [0, 1, 2, 3, 4, 5]
    assert threads.run(save_by_processes, 2, (tmp_path,)) == [(expected, expected, 1)] * 2


def test_a_process_that_ends_is_told(tmp_path):
    process = SavingProcess(None)
    process._process.kill()
    with pytest.raises(RuntimeError, match="that saves has ended with code -9"):
        process.save({"w": facula.ones(2)}, dcp.FileSystemWriter(tmp_path), None, False)


def test_the_memory_of_copies_may_be_kept():
    stager = staging.BlockingAsyncStager(cache_staged_state_dict=True)
    first = stager.stage({"a": [facula.ones(3)], "n": 1})
    second = stager.stage({"a": [facula.zeros(3)], "n": 2})
    assert first["a"][0] is second["a"][0] and second["n"] == 2
    assert isinstance(stager, staging.AsyncStager)


def test_checkpoints_become_files_and_back(tmp_path):
    facula.save(STATE, tmp_path / "one.pt")
    format_utils.torch_save_to_dcp(tmp_path / "one.pt", tmp_path / "folder")
    module = "facula.distributed.checkpoint.format_utils"
    command = [sys.executable, "-m", module, "dcp_to_torch", tmp_path / "folder", tmp_path / "two"]
    assert subprocess.run(command).returncode == 0
    assert equal(facula.load(tmp_path / "two"), STATE)


def load_one_file(rank, path, wanted):
    """What each rank finds, with the first tensor cut over ranks."""
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    state = {"model": {"w": distribute_tensor(facula.zeros(wanted), mesh, [Shard(0)])}}
    state["l"] = facula.zeros(2)
    reader = format_utils.BroadcastingTorchSaveReader()
    planner = format_utils.DynamicMetaLoadPlanner()
    dcp.load(state, checkpoint_id=path, storage_reader=reader, planner=planner)
    return state["model"]["w"].full_tensor().tolist(), state["l"].tolist()


def test_one_rank_reads_a_file_for_all(tmp_path):
    path = tmp_path / "one.pt"
    saved = {"model": {"w": facula.arange(6, dtype=facula.float64)}, "l": facula.ones(2)}
    facula.save(saved, path)
    assert threads.run(load_one_file, 2, (path, 6)) == [([0, 1, 2, 3, 4, 5], [1, 1])] * 2
    with pytest.raises(dcp.CheckpointException, match=r"expected a tensor of \(7,\) for 'model.w'"):
        threads.run(load_one_file, 2, (path, 7))
    with pytest.raises(dcp.CheckpointException, match="nowhere"):
        threads.run(load_one_file, 2, (tmp_path / "nowhere", 6))
    with pytest.raises(dcp.CheckpointException, match="expected tensors alone; got int for 'n'"):
        reader, planner = format_utils.BroadcastingTorchSaveReader(path), None
        planner = format_utils.DynamicMetaLoadPlanner()
        dcp.load({"n": 3}, storage_reader=reader, planner=planner)
