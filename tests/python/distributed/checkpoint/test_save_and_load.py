"""Checkpoints: whoever saves, any number of ranks loads; what goes wrong is told to all."""

import os
import resource
import subprocess
import sys

import facula
import pytest
from facula import nn
from facula.distributed import checkpoint as dcp
from facula.distributed import threads
from facula.distributed.device_mesh import init_device_mesh
from facula.distributed.tensor import Replicate, Shard, distribute_tensor

SHAPE = (10, 6)


def numbers():
    return facula.arange(60.0).view(SHAPE)


# mesh and placements by name
LAYOUTS = {
    "rows": ((4,), [Shard(0)]),
    "columns": ((2,), [Shard(1)]),
    "copies": ((3,), [Replicate()]),
    "blocks": ((2, 2), [Shard(0), Shard(1)]),
    "copies of rows": ((2, 2), [Replicate(), Shard(0)]),
}


def state(layout, values, step):
    """What a rank has: a tensor spread over ranks, one that all have, and other things."""
    sizes, placements = LAYOUTS[layout]
    mesh = init_device_mesh("cpu", sizes)
    return {
        "model": {"w": distribute_tensor(values, mesh, placements), "b": values[0].clone()},
        "optimizer": {"groups": [{"lr": 0.1 * step, "params": [0, 1]}], "none": None},
        "step": step,
    }


def size_of(layout):
    return facula.Size(LAYOUTS[layout][0]).numel()


@pytest.mark.parametrize("to", LAYOUTS)
@pytest.mark.parametrize("source", LAYOUTS)
def test_pieces_find_their_places_on_other_ranks(source, to, tmp_path):
    threads.run(
        lambda rank: dcp.save(state(source, numbers(), 7), checkpoint_id=tmp_path),
        size_of(source),
    )

    def load(rank):
        found = state(to, facula.zeros(SHAPE), 0)
        dcp.load(found, checkpoint_id=tmp_path)
        return found["model"]["w"].full_tensor(), found

    for whole, found in threads.run(load, size_of(to)):
        assert whole.equal(numbers()) and found["model"]["b"].equal(numbers()[0])
        groups = [{"lr": 0.1 * 7, "params": [0, 1]}]
        assert found["optimizer"] == {"groups": groups, "none": None} and found["step"] == 7
    alone = {"model": {"w": facula.zeros(SHAPE)}, "step": 0}
    dcp.load(alone, checkpoint_id=tmp_path)
    assert alone["model"]["w"].equal(numbers()) and alone["step"] == 7


def test_each_piece_is_written_once(tmp_path):
    def save(rank):
        return dcp.save(state("copies of rows", numbers(), 1), checkpoint_id=tmp_path)

    metadata = threads.run(save, 4)[0]
    assert len(metadata.state_dict_metadata["model.w"].chunks) == 2
    assert len(metadata.state_dict_metadata["model.b"].chunks) == 1
    names = {info.relative_path for info in metadata.storage_data.values()}
    assert {p.name for p in tmp_path.iterdir()} == names | {".metadata"}
    assert len(names) > 1  # who writes is spread over ranks


class Counter:
    def __init__(self, value):
        self.value = value

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, state):
        self.value = state["value"]


def test_objects_with_a_state_give_and_take_it(tmp_path):
    model = nn.Linear(2, 3)
    dcp.save({"model": model, "counter": Counter(5)}, checkpoint_id=tmp_path)
    other, counter = nn.Linear(2, 3), Counter(0)
    dcp.load({"model": other, "counter": counter}, checkpoint_id=tmp_path)
    assert other.weight.equal(model.weight) and counter.value == 5


def test_odd_tensors_come_back(tmp_path):
    base = facula.arange(12.0).view(3, 4)
    tensors = {
        "scalar": facula.tensor(3.5),
        "empty": facula.ones(0, 3),
        "transposed": base.t(),
        "view": base[1:, ::2],
        "complex": facula.ones(2, dtype=facula.complex64) * 1j,
        "bool": facula.tensor([True, False]),
        "parameter": nn.Parameter(facula.ones(3)),
    }
    dcp.save(tensors, checkpoint_id=tmp_path)
    found = {k: facula.zeros_like(v) for k, v in tensors.items()}
    dcp.load(found, checkpoint_id=tmp_path)
    assert all(found[k].equal(v) for k, v in tensors.items())
    wide = {"scalar": facula.zeros((), dtype=facula.float64)}
    dcp.load(wide, checkpoint_id=tmp_path)  # in the dtype that is wanted
    assert wide["scalar"].item() == 3.5 and wide["scalar"].dtype == facula.float64


def raised(call, text):
    with pytest.raises(dcp.CheckpointException, match=text) as error:
        call()
    return sorted(error.value.failures)


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ({"missing": facula.zeros(1)}, "no entry 'missing'"),
        ({"w": facula.zeros(3)}, r"'w' of size \(2,\), as it was saved; got \(3,\)"),
        ({"w": 5}, r"tensor of \(2,\) for 'w'.*got int"),
    ],
)
def test_what_the_checkpoint_lacks_is_named(wanted, text, tmp_path):
    dcp.save({"w": facula.ones(2), "n": 1}, checkpoint_id=tmp_path)
    assert raised(lambda: dcp.load(dict(wanted), checkpoint_id=tmp_path), text) == [0]


def test_partial_loads_leave_the_rest(tmp_path):
    dcp.save({"w": facula.ones(2)}, checkpoint_id=tmp_path)
    found = {"w": facula.zeros(2), "other": facula.full((1,), 7.0), "n": 3}
    planner = dcp.DefaultLoadPlanner(allow_partial_load=True)
    dcp.load(found, checkpoint_id=tmp_path, planner=planner)
    assert found["w"].equal(facula.ones(2)) and found["other"].item() == 7 and found["n"] == 3


def test_folders_without_a_whole_checkpoint_are_refused(tmp_path):
    load = lambda: dcp.load({"w": facula.zeros(2)}, checkpoint_id=tmp_path)  # noqa: E731
    raised(load, "no checkpoint was finished there")
    with pytest.raises(RuntimeError, match="checkpoint_id or storage"):
        dcp.load({})
    with pytest.raises(RuntimeError, match="checkpoint_id or storage"):
        dcp.save({})
    (tmp_path / ".metadata").write_bytes(b"nothing")
    raised(load, "Unpickling")


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda p: p.write_bytes(p.read_bytes()[:-50]), "cut short"),
        (lambda p: p.write_bytes(p.read_bytes().replace(b"\0\x80?", b"\0\x81?", 1)), "other bytes"),
        (lambda p: p.unlink(), "No such file"),
    ],
)
def test_damaged_files_are_found(damage, text, tmp_path):
    dcp.save({"w": facula.ones(200)}, checkpoint_id=tmp_path)
    (file,) = tmp_path.glob("*.distcp")
    damage(file)
    raised(lambda: dcp.load({"w": facula.zeros(200)}, checkpoint_id=tmp_path), text)


class Broken:
    def __reduce__(self):
        raise ValueError("cannot be pickled today")


def test_a_rank_that_fails_leaves_the_checkpoint_before(tmp_path):
    def save(rank, last):
        values = {
            "w": facula.full((4,), float(last)),
            f"own{rank}": Broken() if last == rank else 0,
        }
        dcp.save(values, checkpoint_id=tmp_path)

    threads.run(lambda rank: save(rank, 9), 2)
    before = sorted(p.name for p in tmp_path.iterdir())

    def fail(rank):
        return raised(lambda: save(rank, 1), "cannot be pickled today")

    assert threads.run(fail, 2) == [[1], [1]]
    assert sorted(p.name for p in tmp_path.iterdir()) == before  # also rank 0's part has gone
    found = {"w": facula.zeros(4)}
    dcp.load(found, checkpoint_id=tmp_path)
    assert found["w"].equal(facula.full((4,), 9.0))
    threads.run(lambda rank: save(rank, 8), 2)
    assert len(list(tmp_path.iterdir())) == len(before)


def test_a_full_disk_leaves_the_checkpoint_before(tmp_path):
    dcp.save({"w": facula.ones(1000)}, checkpoint_id=tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        raised(
            lambda: dcp.save({"w": facula.zeros(100_000)}, checkpoint_id=tmp_path), "large|Errno"
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(list(tmp_path.iterdir())) == 2
    found = {"w": facula.zeros(1000)}
    dcp.load(found, checkpoint_id=tmp_path)
    assert found["w"].equal(facula.ones(1000))


def test_a_process_killed_while_it_saves_leaves_the_checkpoint_before(tmp_path):
    program = """
import os, signal, sys, facula
from facula.distributed import checkpoint as dcp

class Killer:
    def __reduce__(self):
        os.kill(os.getpid(), signal.SIGKILL)

folder, zeros = sys.argv[1], facula.zeros(1000)
dcp.save({"w": facula.ones(1000)}, checkpoint_id=folder)
dcp.save({"a": zeros, "b": Killer(), "w": zeros}, checkpoint_id=folder)
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], timeout=60)
    assert done.returncode == -9
    found = {"w": facula.zeros(1000)}
    dcp.load(found, checkpoint_id=tmp_path)
    assert found["w"].equal(facula.ones(1000))


def test_checkpoints_are_kept_where_that_is_asked(tmp_path):
    dcp.save({"w": facula.ones(2)}, checkpoint_id=tmp_path)
    writer = dcp.FileSystemWriter(tmp_path, overwrite=False)
    raised(lambda: dcp.save({"w": facula.zeros(2)}, storage_writer=writer), "overwrite is False")
    one_each = dcp.FileSystemWriter(tmp_path, single_file_per_rank=False)
    dcp.save({"w": facula.zeros(2), "v": facula.ones(1)}, storage_writer=one_each)
    assert len(list(tmp_path.glob("*.distcp"))) == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    tmp_path.chmod(0o500)
    raised(lambda: dcp.save({"w": facula.ones(2)}, checkpoint_id=tmp_path / "new"), "denied")


def test_pieces_must_make_up_the_tensor(tmp_path):
    def save(rank):
        part = facula.full((2,), float(rank))
        shape = (4,) if rank == 0 else (3,)
        mesh = init_device_mesh("cpu", (2,))
        from facula.distributed.tensor import DTensor

        part = DTensor.from_local(part, mesh, [Shard(0)], shape=shape, stride=(1,))
        return raised(lambda: dcp.save({"w": part}, checkpoint_id=tmp_path), "make up")

    assert threads.run(save, 2) == [[0], [0]]
