"""DeviceMesh: coordinates, groups, parts."""

import facula
import pytest
from facula.distributed import all_reduce, threads
from facula.distributed.device_mesh import DeviceMesh, init_device_mesh
from facula.distributed.tensor import Shard, distribute_tensor


def test_groups_lie_along_dimensions():
    def work(rank):
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        sums = []
        for name in ("dp", "tp"):
            x = facula.tensor(float(rank))
            all_reduce(x, group=mesh[name].get_group())
            sums.append(x.item())
        return mesh.get_coordinate(), mesh.get_local_rank("tp"), sums

    assert threads.run(work, 4) == [
        ((0, 0), 0, [2, 1]),
        ((0, 1), 1, [4, 1]),
        ((1, 0), 0, [2, 5]),
        ((1, 1), 1, [4, 5]),
    ]


def test_parts_and_flattened_meshes():
    def work(rank):
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        flat = mesh._flatten("all")
        assert mesh["all"] is flat and flat.size() == 4
        x = facula.ones(())
        all_reduce(x, group=flat.get_group())
        assert x.item() == 4 and mesh["dp", "tp"] == mesh and mesh["dp"] != mesh["tp"]
        return repr(mesh), repr(mesh["dp"]), mesh["dp"].mesh.tolist()

    found = threads.run(work, 4)
    assert found[1] == (
        "DeviceMesh((dp=2, tp=2), 'cpu', stride=(2, 1))",
        "DeviceMesh((dp=2), 'cpu', stride=(2,))",
        [1, 3],
    )


def test_from_group():
    def work(rank):
        group = facula.distributed.new_group([0, 1])
        mesh = DeviceMesh.from_group(group, "cpu", mesh_dim_names=("x",))
        return mesh.shape, mesh.get_group("x") is group

    assert threads.run(work, 2) == [((2,), True)] * 2


WRONG = {
    "no names": (lambda m: init_device_mesh("cpu", (2,))["x"], RuntimeError, "mesh_dim_names"),
    "other name": (lambda m: m["x"], KeyError, "names of"),
    "other order": (lambda m: m["tp", "dp"], KeyError, "order"),
    "which group": (lambda m: m.get_group(), RuntimeError, "mesh_dim"),
    "too many": (lambda m: init_device_mesh("cpu", (16,)), RuntimeError, "no more than the 2"),
    "names twice": (
        lambda m: init_device_mesh("cpu", (1, 2), mesh_dim_names=("a", "a")),
        RuntimeError,
        "differ",
    ),
    "index": (lambda m: init_device_mesh("cpu:0", (2,)), RuntimeError, "without an index"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use_is_told(name):
    call, error, text = WRONG[name]

    def work(rank):
        mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("dp", "tp"))
        with pytest.raises(error, match=text):
            call(mesh)

    threads.run(work, 2)


def test_calls_on_a_mesh_that_has_ended_are_not_used_again():
    def work(rank, extra):
        for _ in range(extra):
            facula.distributed.new_group([0, 1])  # later groups get other names
        mesh = init_device_mesh("cpu", (2,))
        a = distribute_tensor(facula.arange(4.0), mesh, [Shard(0)])
        return (a * 2).sum().full_tensor().item(), mesh

    first = threads.run(work, 2, (0,))
    second = threads.run(work, 2, (3,))
    assert [value for value, _ in (*first, *second)] == [12.0] * 4
    assert first[0][1] != second[0][1]
