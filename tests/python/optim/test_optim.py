"""facula.optim: steps that can be computed by hand, and the handling of groups and state."""

import facula
import pytest
from facula import optim
from facula.optim import lr_scheduler


def _param(values):
    return facula.tensor(values, requires_grad=True)


def test_sgd_by_hand():
    p = _param([1.0, 2.0])
    opt = optim.SGD([p], lr=0.1, momentum=0.5)
    for expected in ([0.9, 1.9], [0.75, 1.75]):
        p.grad = facula.ones(2)
        opt.step()
        assert p.tolist() == pytest.approx(expected)


def test_adam_first_step_is_lr():
    p = _param([1.0, -2.0])
    opt = optim.Adam([p], lr=0.01)
    p.grad = facula.tensor([5.0, -0.3])
    opt.step()
    assert p.tolist() == pytest.approx([0.99, -1.99], rel=1e-5)
    assert opt.state[p]["step"].item() == 1


@pytest.mark.parametrize(
    "name",
    [
        "SGD",
        "Adam",
        "AdamW",
        "RMSprop",
        "Adagrad",
        "Adadelta",
        "Adamax",
        "NAdam",
        "RAdam",
        "ASGD",
        "Rprop",
    ],
)
def test_descends_and_restores(name):
    p = _param([1.0, 2.0])
    opt = getattr(optim, name)([p])

    def closure():
        opt.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    first = opt.step(closure).item()
    for _ in range(20):
        last = opt.step(closure).item()
    assert last < first
    other = getattr(optim, name)([p])
    other.load_state_dict(opt.state_dict())
    assert other.state_dict()["param_groups"] == opt.state_dict()["param_groups"]


def test_group_errors():
    p = _param([1.0])
    with pytest.raises(ValueError, match="empty parameter list"):
        optim.SGD([])
    with pytest.raises(TypeError, match="iterable of Tensors"):
        optim.SGD(p)
    with pytest.raises(ValueError, match="Invalid learning rate"):
        optim.Adam([p], lr=-1.0)
    opt = optim.SGD([p])
    with pytest.raises(ValueError, match="one parameter group"):
        opt.add_param_group({"params": [p]})


def test_step_hooks():
    p, seen = _param([1.0]), []
    opt = optim.SGD([p])
    opt.register_step_pre_hook(lambda o, a, k: seen.append("pre"))
    opt.register_step_post_hook(lambda o, a, k: seen.append("post"))
    opt.step()
    assert seen == ["pre", "post"]


def test_step_lr():
    opt = optim.SGD([_param([1.0])], lr=1.0)
    schedule = lr_scheduler.StepLR(opt, 2, gamma=0.1)
    rates = []
    for _ in range(5):
        rates.append(schedule.get_last_lr()[0])
        opt.step()
        schedule.step()
    assert rates == pytest.approx([1, 1, 0.1, 0.1, 0.01])


@pytest.mark.parametrize(
    "make",
    [
        lambda opt: optim.lr_scheduler.LambdaLR(opt, lambda epoch: 0.5),
        lambda opt: optim.lr_scheduler.MultiplicativeLR(opt, lambda epoch: 0.5),
        lambda opt: optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, 5),
        lambda opt: optim.lr_scheduler.CyclicLR(opt, 0.1, 0.2),
    ],
    ids=["lambda", "multiplicative", "warm restarts", "cyclic"],
)
def test_schedule_refuses_a_group_added_later(make):
    """Schedules with a setting for each group cannot guess that of a new one."""
    opt = optim.SGD([_param([1.0])], lr=0.1, momentum=0.9)
    schedule = make(opt)
    opt.add_param_group({"params": [_param([2.0])], "lr": 0.2})
    opt.step()
    with pytest.raises(ValueError):
        schedule.step()
