"""Models that are trained apart and averaged now and then."""

import facula
import facula.distributed as dist
import pytest
from facula import nn
from facula.distributed import threads
from facula.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as hook
from facula.distributed.algorithms.model_averaging import averagers, utils
from facula.distributed.algorithms.model_averaging.hierarchical_model_averager import (
    HierarchicalModelAverager,
)
from facula.distributed.optim import PostLocalSGDOptimizer


def parameter(value):
    p = nn.Parameter(facula.full((2,), float(value)))
    p.grad = facula.ones(2)
    return p


def steps(averager, p, values):
    """The parameter's number after each step that sets it to one of `values`."""
    found = []
    for value in values:
        p.data.fill_(value)
        averager.average_parameters([{"params": [p]}])
        found.append(p[0].item())
    return found


def test_models_are_averaged_every_period_after_the_warmup():
    def work(rank):
        averager = averagers.PeriodicModelAverager(3, warmup_steps=2)
        return steps(averager, parameter(0), [rank * 2.0] * 7)

    assert threads.run(work, 2) == [[0, 0, 1, 0, 0, 1, 0], [2, 2, 1, 2, 2, 1, 2]]


def test_larger_groups_average_less_often():
    def work(rank):
        averager = HierarchicalModelAverager({2: 2, 4: 4})
        return steps(averager, parameter(0), [float(rank)] * 4)

    found = threads.run(work, 4)
    assert found == [[1.5, 0, 0.5, 0], [1.5, 1, 0.5, 1], [1.5, 2, 2.5, 2], [1.5, 3, 2.5, 3]]


def test_parameters_without_gradients_and_of_other_dtypes():
    def work(rank):
        still = nn.Parameter(facula.full((1,), float(rank)))
        wide = nn.Parameter(facula.full((3,), float(rank), dtype=facula.float64))
        wide.grad = facula.ones_like(wide)
        narrow = parameter(rank + 1)
        utils.average_parameters_or_parameter_groups([still, wide, narrow], None)
        return still.item(), wide[0].item(), narrow[1].item()

    assert threads.run(work, 2) == [(0, 0.5, 1.5), (1, 0.5, 1.5)]


def test_the_optimizer_steps_alone_and_averages_when_due():
    def work(rank):
        p = nn.Parameter(facula.zeros(2))
        inner = facula.optim.SGD([p], lr=1.0, momentum=0.5)
        optimizer = PostLocalSGDOptimizer(inner, averagers.PeriodicModelAverager(2))
        found = []
        for _ in range(3):
            optimizer.zero_grad()
            (p * (rank + 1)).sum().backward()
            optimizer.step()
            found.append(p[0].item())
        state = optimizer.state_dict()
        optimizer.averager.step = 0
        optimizer.load_state_dict(state)
        assert optimizer.averager.step == 3 and optimizer.state[p]["momentum_buffer"] is not None
        with pytest.warns(UserWarning, match="begins at 0"):
            optimizer.load_state_dict(inner.state_dict())
        return found

    assert threads.run(work, 2) == [[-1.5, -3.0, -6.375], [-1.5, -4.5, -6.375]]


def test_the_hook_averages_gradients_of_all_and_then_of_neighbours():
    def work(rank):
        alone = [dist.new_group([r]) for r in range(dist.get_world_size())][rank]
        model = nn.parallel.DistributedDataParallel(nn.Linear(1, 1, bias=False))
        state = hook.PostLocalSGDState(None, alone, 2)
        model.register_comm_hook(state, hook.post_localSGD_hook)
        found = []
        for _ in range(4):
            model.zero_grad()
            model(facula.full((1, 1), float(rank))).sum().backward()
            found.append(next(model.parameters()).grad.item())
        return found

    assert threads.run(work, 2) == [[0.5, 0.5, 0, 0], [0.5, 0.5, 1, 1]]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: averagers.PeriodicModelAverager(0), "period must be"),
        (lambda: averagers.PeriodicModelAverager(2, -1), "warmup_steps"),
        (lambda: HierarchicalModelAverager({}), "got none"),
        (lambda: HierarchicalModelAverager({2: 2, 1: 4}), "rise"),
        (lambda: HierarchicalModelAverager({2: 5}), "must be 1"),
        (lambda: utils.average_parameters([], None), "got none"),
    ],
)
def test_bad_arguments_are_named(make, text):
    def work(rank):
        with pytest.raises(ValueError, match=text):
            make()
        return True

    assert threads.run(work, 1) == [True]
