"""ZeroRedundancyOptimizer: parameters, state and settings equal to those of one optimizer."""

import copy

import facula
import facula.distributed as dist
import pytest
from facula import nn
from facula.distributed import threads
from facula.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook import (
    hook_with_zero_step,
    hook_with_zero_step_interleaved,
)
from facula.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from facula.distributed.optim import ZeroRedundancyOptimizer as Zero

OPTIMIZERS = {
    "SGD": (facula.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
    "Adam": (facula.optim.Adam, {"lr": 0.01}),
    "AdamW": (facula.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}),
}


def make_model():
    facula.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 7), nn.Tanh(), nn.Linear(7, 3), nn.Linear(3, 1))


def train(model, optimizer, steps, begin=0):
    for step in range(begin, begin + steps):
        facula.manual_seed(100 + step)
        optimizer.zero_grad()
        model(facula.randn(6, 4)).square().mean().backward()
        optimizer.step()
    return [p.detach().clone() for p in model.parameters()]


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("as_view", [False, True])
@pytest.mark.parametrize("ranks", [1, 3])
def test_parameters_are_those_of_one_optimizer(name, as_view, ranks):
    kind, settings = OPTIMIZERS[name]
    model = make_model()
    want = train(model, kind(model.parameters(), **settings), 4)

    def work(rank):
        model = make_model()
        optimizer = Zero(model.parameters(), kind, parameters_as_bucket_view=as_view, **settings)
        return train(model, optimizer, 4), len(optimizer.optim.state)

    found = threads.run(work, ranks)
    for params, _ in found:
        assert all(a.equal(b) for a, b in zip(params, want, strict=True))
    held = [count for _, count in found]
    assert sum(held) == 6 and max(held) < 6 or ranks == 1


def test_state_goes_through_one_optimizer_and_back():
    kind, settings = OPTIMIZERS["Adam"]
    model = make_model()
    plain = kind(model.parameters(), **settings)
    train(model, plain, 3)
    want_state = copy.deepcopy(plain.state_dict())
    want = train(model, plain, 2, 3)

    def work(rank):
        model = make_model()
        first = Zero(model.parameters(), kind, **settings)
        train(model, first, 3)
        with pytest.raises(RuntimeError, match="consolidate_state_dict"):
            first.state_dict()
        for to in (0, 1):
            first.consolidate_state_dict(to)
        saved = [first.state_dict() if rank == 1 else None]
        dist.broadcast_object_list(saved, 1)
        second = Zero(model.parameters(), kind, lr=5.0)
        second.load_state_dict(copy.deepcopy(saved[0]))
        assert second.optim.param_groups[0]["lr"] == settings["lr"]
        return copy.deepcopy(saved[0]), train(model, second, 2, 3)

    for saved, params in threads.run(work, 2):
        assert saved["param_groups"] == want_state["param_groups"]
        assert list(saved["state"]) == list(want_state["state"])
        for number, state in saved["state"].items():
            assert all(v.equal(want_state["state"][number][k]) for k, v in state.items())
        assert all(a.equal(b) for a, b in zip(params, want, strict=True))


def test_groups_and_schedules_reach_every_part():
    def program(make):
        model = make_model()
        layers = [list(layer.parameters()) for layer in (model[0], model[2], model[3])]
        optimizer = make([{"params": layers[0]}, {"params": layers[1], "lr": 0.5}])
        optimizer.add_param_group({"params": layers[2], "lr": 0.2})
        schedule = facula.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        for step in range(3):
            train(model, optimizer, 1, step)
            schedule.step()
        return [p.detach() for p in model.parameters()], [g["lr"] for g in optimizer.param_groups]

    want, rates = program(lambda groups: facula.optim.SGD(groups, lr=0.1))
    work = lambda rank: program(lambda groups: Zero(groups, facula.optim.SGD, lr=0.1))  # noqa: E731
    for params, found in threads.run(work, 2):
        assert found == rates
        assert all(a.equal(b) for a, b in zip(params, want, strict=True))


def test_closures_give_the_loss():
    def work(rank):
        p = nn.Parameter(facula.ones(2))
        optimizer = Zero([p], facula.optim.SGD, lr=0.5)

        def closure():
            optimizer.zero_grad()
            loss = p.square().sum()
            loss.backward()
            return loss

        return optimizer.step(closure).item(), p.tolist()

    assert threads.run(work, 2) == [(2.0, [0.0, 0.0])] * 2


@pytest.mark.parametrize("hook", [hook_with_zero_step, hook_with_zero_step_interleaved])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_within_the_backward_pass_are_those_after_it(name, hook):
    kind, settings = OPTIMIZERS[name]
    first = make_model()

    def work(rank):
        found = []
        for overlap in (False, True):
            model = copy.deepcopy(first)
            ddp = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=60 / 2**20)
            optimizer = Zero(model.parameters(), kind, overlap_with_ddp=overlap, **settings)
            if overlap:
                ddp.register_comm_hook(None, hook(allreduce_hook, ddp, optimizer))
            for step in range(4):
                optimizer.zero_grad()
                inputs = (facula.arange(24.0) * (step + 2 * rank + 1)).sin().view(6, 4)
                ddp(inputs).square().mean().backward()
                assert optimizer.step() is None
                if step == 2:
                    optimizer.param_groups[0]["lr"] /= 2
            found.append([p.detach().clone() for p in model.parameters()])
        return found

    for after, within in threads.run(work, 2):
        assert all(a.equal(b) for a, b in zip(after, within, strict=True))


def test_hooks_need_an_optimizer_that_leaves_steps_to_them():
    def work(rank):
        optimizer = Zero([nn.Parameter(facula.ones(1))], facula.optim.SGD, lr=0.1)
        with pytest.raises(ValueError, match="hook_with_zero_step.*overlap_with_ddp=True"):
            hook_with_zero_step(allreduce_hook, None, optimizer)
        return True

    assert threads.run(work, 2) == [True, True]


@pytest.mark.parametrize(
    ("params", "options", "error", "text"),
    [
        (lambda: facula.ones(2), {}, TypeError, "one Tensor"),
        (lambda: [], {}, ValueError, "got none"),
        (lambda: [facula.ones(1), {"params": []}], {}, TypeError, "not both"),
        (lambda: ["a"], {}, TypeError, "'str'"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(params, options, error, text):
    def work(rank):
        with pytest.raises(error, match=text):
            Zero(params(), facula.optim.SGD, lr=0.1, **options)
        return True

    assert threads.run(work, 2) == [True, True]
