"""Saving beside training, and checkpoints as single files."""

import subprocess
import sys

import facula
import facula.distributed as dist
import pytest
from facula.distributed import checkpoint as dcp
from facula.distributed import threads
from facula.distributed.checkpoint import format_utils, staging
from facula.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType

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
    with pytest.raises(NotImplementedError, match="processes"):
        dcp.async_save(
            {}, checkpoint_id=tmp_path, async_checkpointer_type=AsyncCheckpointerType.PROCESS
        )


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
