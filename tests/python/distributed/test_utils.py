"""`distributed.utils`: helpers that wrappers of other packages call."""

import facula
import facula.distributed.utils as utils
import pytest
from facula import nn
from facula.distributed import threads


def test_arguments_go_into_one_tuple_and_back():
    flat, names = utils._pack_kwargs(1, 2, a=3, b=4)
    assert (flat, names) == ((1, 2, 3, 4), ("a", "b"))
    assert utils._unpack_kwargs(flat, names) == ((1, 2), {"a": 3, "b": 4})
    with pytest.raises(AssertionError, match="an argument for each"):
        utils._unpack_kwargs((1,), names)


def test_only_floating_tensors_are_cast():
    args, kwargs = utils._cast_forward_inputs(
        facula.bfloat16, facula.ones(1), facula.ones(1, dtype=facula.int64), x=[facula.ones(1)]
    )
    assert [a.dtype for a in args] == [facula.bfloat16, facula.int64]
    assert kwargs["x"][0].dtype == facula.bfloat16


def test_arguments_move_to_a_device_in_tuples_of_one():
    x = facula.ones(1)
    assert utils._to_kwargs((x,), {"a": x}, facula.device("cpu"), False) == (((x,),), ({"a": x},))


def test_storages_are_emptied_and_filled():
    t = facula.ones(3)
    utils._free_storage(t)
    assert t.untyped_storage().size() == 0 and not utils._data_ptr_allocated(t)
    utils._alloc_storage(t, facula.Size([3]))
    assert t.untyped_storage().size() == 12 and utils._data_ptr_allocated(t)


def test_a_storage_of_others_is_not_emptied(capfd):
    with pytest.raises(AssertionError, match="for itself"):
        utils._free_storage(facula.ones(4)[1:3])
    assert "for itself" in capfd.readouterr().out


def test_names_are_replaced_by_prefix():
    state = {"a.x": 1, "a.y": 2, "b.a.z": 3}
    utils._replace_by_prefix(state, "a.", "q.")
    assert state == {"b.a.z": 3, "q.x": 1, "q.y": 2}


def test_modules_within_others_are_no_roots():
    n = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.Linear(1, 1)))
    assert utils._get_root_modules([n[0], n[1], n[1][0]]) == [n[0], n[1]]


def test_states_of_one_rank_come_to_all():
    def work(rank):
        module = nn.BatchNorm1d(2)
        with facula.no_grad():
            for t in (module.weight, module.bias, module.running_mean):
                t.fill_(rank + 1)
        group = facula.distributed.group.WORLD
        utils._sync_module_states(module, group, 1 << 20, 1, {"bias"})
        with pytest.raises(RuntimeError, match="same parameters"):
            utils._verify_param_shape_across_processes(group, [facula.ones(rank + 1)])
        return [t[0].item() for t in (module.weight, module.bias, module.running_mean)]

    assert threads.run(work, 2) == [[2, 1, 2], [2, 2, 2]]


def test_ranks_that_are_threads_draw_each_from_a_generator_of_its_own():
    facula.manual_seed(5)
    alone = facula.rand(3)
    facula.manual_seed(5)
    before = facula.get_rng_state()

    def work(rank):
        begun = facula.rand(3)
        facula.distributed.barrier()
        seeds = []
        for _ in range(100):
            facula.manual_seed(rank)
            seeds.append(facula.rand(1).item())
        return begun, len(set(seeds)), facula.initial_seed()

    for rank, (begun, different, seed) in enumerate(threads.run(work, 3)):
        assert facula.equal(begun, alone) and different == 1 and seed == rank
    assert facula.equal(facula.get_rng_state(), before)
