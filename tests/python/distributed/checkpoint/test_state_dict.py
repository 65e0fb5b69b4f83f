"""States of models and optimizers: by names without wrappers, whole or in parts, there and back."""

import facula
import pytest
from facula import nn
from facula.distributed import checkpoint as dcp
from facula.distributed import threads
from facula.distributed.checkpoint.optimizer import load_sharded_optimizer_state_dict
from facula.distributed.checkpoint.state_dict import (
    StateDictOptions,
    _patch_model_state_dict,
    _patch_optimizer_state_dict,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from facula.distributed.fsdp import fully_shard


def make_model(seed=1):
    facula.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 2))


def trained(model, steps=2, rate=0.1):
    optimizer = facula.optim.AdamW(model.parameters(), lr=rate)
    for step in range(steps):
        facula.manual_seed(step)
        optimizer.zero_grad()
        model(facula.randn(8, 4)).square().mean().backward()
        optimizer.step()
    return optimizer


def equal(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(v, b[k]) for k, v in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(equal, a, b))
    return a.equal(b) if isinstance(a, facula.Tensor) else a == b


WRAPPERS = {
    "plain": lambda m: m,
    "compiled": facula.compile,
    "data parallel": nn.parallel.DistributedDataParallel,
    "both": lambda m: facula.compile(nn.parallel.DistributedDataParallel(m)),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_names_do_not_hang_on_wrappers(wrapper):
    def work(rank):
        model = WRAPPERS[wrapper](make_model())
        optimizer = facula.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        state, of_optimizer = get_state_dict(model, optimizer)
        assert list(state) == list(make_model().state_dict())
        assert of_optimizer["param_groups"][0]["params"] == [
            name for name, _ in make_model().named_parameters()
        ]
        return True

    assert threads.run(work, 1) == [True]


FULL = StateDictOptions(full_state_dict=True, cpu_offload=True)
FROM_FIRST = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)


@pytest.mark.parametrize("taken", ["full", "from rank 0", "parts"])
def test_sharded_models_give_and_take_whole_states(taken):
    want = make_model()
    optimizer = trained(want)
    whole = get_state_dict(want, optimizer)

    def work(rank):
        sharded = fully_shard(make_model(2))
        other = facula.optim.AdamW(sharded.parameters(), lr=9.0, foreach=False)
        options = {"full": StateDictOptions(full_state_dict=True), "from rank 0": FROM_FIRST}
        given = whole if taken == "full" or rank == 0 else ({}, {})
        if taken == "parts":
            set_state_dict(sharded, other, model_state_dict=whole[0], optim_state_dict=whole[1],
                           options=options["full"])  # fmt: skip
            given = get_state_dict(sharded, other)
            sharded = fully_shard(make_model(3))
            other = facula.optim.AdamW(sharded.parameters(), lr=9.0, foreach=False)
        missing = set_state_dict(
            sharded, other, model_state_dict=given[0], optim_state_dict=given[1],
            options=options.get(taken),
        )  # fmt: skip
        assert not missing.missing_keys and not missing.unexpected_keys
        return get_state_dict(sharded, other, options=FULL)

    found = threads.run(work, 2)
    assert equal(found[0][0], whole[0])
    assert equal(found[0][1]["state"], whole[1]["state"])
    assert found[0][1]["param_groups"][0]["lr"] == 0.1
    assert found[1] == ({}, {})


def test_training_goes_on_from_a_checkpoint_of_another_number_of_ranks(tmp_path):
    def run(ranks, steps, begin):
        def work(rank):
            model = fully_shard(make_model())
            optimizer = facula.optim.AdamW(model.parameters(), lr=0.1, foreach=False)
            if begin:
                state = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer),
                                 strict=True))  # fmt: skip
                dcp.load(state, checkpoint_id=tmp_path)
                set_state_dict(model, optimizer, model_state_dict=state["model"],
                               optim_state_dict=state["optimizer"])  # fmt: skip
            for step in range(begin, begin + steps):
                facula.manual_seed(step)
                optimizer.zero_grad()
                model(facula.randn(8, 4)).square().mean().backward()
                optimizer.step()
            state = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer),
                             strict=True))  # fmt: skip
            dcp.save(state, checkpoint_id=tmp_path)
            return get_model_state_dict(model, options=FULL)

        return threads.run(work, ranks)[0]

    want = run(1, 4, 0)
    run(4, 2, 0)
    found = run(2, 2, 2)
    for name, value in want.items():
        facula.testing.assert_close(found[name], value)


def test_flat_states_of_optimizers():
    model = make_model()
    optimizer = trained(model)
    flat = get_optimizer_state_dict(
        model, optimizer, options=StateDictOptions(flatten_optimizer_state_dict=True)
    )
    assert flat["param_groups.0.weight.lr"] == 0.1 and "state.2.bias.exp_avg" in flat
    other = make_model()
    fresh = facula.optim.AdamW(other.parameters(), lr=9.0)
    set_state_dict(other, fresh, model_state_dict=model.state_dict(), optim_state_dict=flat)
    assert equal(fresh.state_dict(), optimizer.state_dict())


def test_making_state_changes_nothing():
    model = make_model()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    optimizer = facula.optim.Adam(model.parameters(), lr=0.5)
    state = get_optimizer_state_dict(model, optimizer)
    assert set(state["state"]["0.weight"]) == {"step", "exp_avg", "exp_avg_sq"}
    assert equal(dict(model.state_dict()), before) and optimizer.param_groups[0]["lr"] == 0.5
    assert all(p.grad is None for p in model.parameters())


def test_parts_of_a_model_and_frozen_parameters():
    model = make_model()
    model[0].weight.requires_grad_(False)
    options = StateDictOptions(ignore_frozen_params=True, strict=False)
    state = get_model_state_dict(model, options=options)
    assert "0.weight" not in state and "0.bias" in state
    assert list(get_model_state_dict(model, submodules={model[2]})) == ["2.weight", "2.bias"]
    told = set_model_state_dict(make_model(), state, options=options)
    assert told.missing_keys == ["0.weight"]
    with pytest.raises(RuntimeError, match=r"0\.weight"):
        set_model_state_dict(make_model(), state)
    with pytest.raises(ValueError, match="full_state_dict"):
        StateDictOptions(broadcast_from_rank0=True)


def test_methods_of_models_and_optimizers_may_be_replaced():
    model = make_model()
    wrapped = nn.Sequential(model)
    optimizer = trained(model)
    expected = get_state_dict(wrapped, optimizer)
    _patch_model_state_dict(wrapped)
    _patch_optimizer_state_dict(wrapped, optimizers=(optimizer,))
    assert equal(dict(wrapped.state_dict()), dict(expected[0]))
    assert equal(optimizer.state_dict(), expected[1])
    other = nn.Sequential(make_model(2))
    moved = trained(other, steps=1)
    _patch_model_state_dict(other)
    _patch_optimizer_state_dict(other, optimizers=moved)
    other.load_state_dict(wrapped.state_dict())
    moved.load_state_dict(optimizer.state_dict())
    assert equal(dict(other.state_dict()), dict(expected[0]))
    assert equal(moved.state_dict(), expected[1])


def load_optimizer(rank, folder):
    model = make_model()
    fully_shard(model)
    reader = dcp.FileSystemReader(folder)
    found = load_sharded_optimizer_state_dict(model.state_dict(), "optim", reader)
    state = found["optim"]["state"]["2.weight"]
    mean = state["exp_avg"]
    return mean.to_local().shape[0], mean.full_tensor(), state["step"], found["optim"]


def test_states_of_optimizers_load_without_one(tmp_path):
    model = make_model()
    saved = get_optimizer_state_dict(model, trained(model))
    dcp.save({"optim": saved, "other": facula.ones(2)}, checkpoint_id=tmp_path, no_dist=True)
    for rows, mean, step, found in threads.run(load_optimizer, 2, (tmp_path,)):
        assert rows == 1 and mean.equal(saved["state"]["2.weight"]["exp_avg"]) and step == 2
        assert found["param_groups"] == saved["param_groups"]
    with pytest.raises(ValueError, match="expected entries below 'nowhere'"):
        reader = dcp.FileSystemReader(tmp_path)
        load_sharded_optimizer_state_dict(model.state_dict(), "nowhere", reader)
