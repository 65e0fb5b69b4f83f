"""Torch7's optimizers take the steps of today's."""

import facula
import pytest
from facula.legacy import optim

# A function, its config, the optimizer of today and its settings.
METHODS = [
    ("sgd", {"learningRate": 0.1}, facula.optim.SGD, {"lr": 0.1}),
    (
        "sgd",
        {"learningRate": 0.1, "momentum": 0.9, "weightDecay": 0.01},
        facula.optim.SGD,
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.9, "weight_decay": 0.01},
    ),
    (
        "sgd",
        {"learningRate": 0.1, "momentum": 0.9, "dampening": 0, "nesterov": True},
        facula.optim.SGD,
        {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    ),
    ("adam", {"beta1": 0.8}, facula.optim.Adam, {"lr": 1e-3, "betas": (0.8, 0.999)}),
    ("adamax", {"epsilon": 1e-3}, facula.optim.Adamax, {"lr": 2e-3, "eps": 1e-3}),
    ("adagrad", {"learningRate": 0.1}, facula.optim.Adagrad, {"lr": 0.1}),
    ("adadelta", {"rho": 0.8}, facula.optim.Adadelta, {"rho": 0.8}),
    ("rmsprop", {"alpha": 0.9}, facula.optim.RMSprop, {"lr": 1e-2, "alpha": 0.9}),
    ("asgd", {"learningRate": 0.1}, facula.optim.ASGD, {"lr": 0.1}),
    ("rprop", {"learningRate": 0.1}, facula.optim.Rprop, {"lr": 0.1}),
]
START, SCALE = [1.0, -2.0, 0.5], facula.tensor([1.0, 3.0, 0.3])


def loss_and_gradient(x):
    return (SCALE * x.square()).sum().item(), 2 * SCALE * x


@pytest.mark.parametrize("name, config, kind, settings", METHODS)
def test_steps_are_those_of_today(name, config, kind, settings):
    x, today = facula.tensor(START), facula.tensor(START, requires_grad=True)
    optimizer = kind([today], **settings)
    for _ in range(10):
        today.grad = loss_and_gradient(today.detach())[1]
        before = loss_and_gradient(x)[0]
        optimizer.step()
        same, loss = getattr(optim, name)(loss_and_gradient, x, config)
        assert same is x and loss == before
    assert facula.equal(x, today)
    assert not facula.equal(x, facula.tensor(START))


def test_the_learning_rate_decays_by_evaluations():
    x, config = facula.ones(1), {"learningRate": 0.5, "learningRateDecay": 1.0}
    for expected in (0.5, 0.25, 0.25 - 0.5 / 3):
        optim.sgd(lambda x: (0.0, facula.ones(1)), x, config)
        assert x.item() == pytest.approx(expected)


def test_state_may_be_kept_beside_the_config():
    config, state, x = {"learningRate": 0.1, "momentum": 0.5}, {}, facula.tensor(START)
    optim.sgd(loss_and_gradient, x, config, state)
    assert config == {"learningRate": 0.1, "momentum": 0.5} and state["evalCounter"] == 1


def test_a_changed_learning_rate_counts_from_the_next_step():
    config, x = {"learningRate": 1.0}, facula.zeros(1)
    optim.sgd(lambda x: (0.0, facula.ones(1)), x, config)
    config["learningRate"] = 0.25
    optim.sgd(lambda x: (0.0, facula.ones(1)), x, config)
    assert x.item() == -1.25


def test_lbfgs_finds_the_minimum_and_tells_its_losses():
    x, config = facula.tensor(START), {"maxIter": 20, "learningRate": 0.5}
    _, losses = optim.lbfgs(loss_and_gradient, x, config)
    assert losses[0] == pytest.approx(13.075) and losses[-1] < 1e-3
    assert x.abs().max() < 0.05


def test_a_setting_that_there_is_not_is_named():
    with pytest.raises(ValueError, match=r"adam\(\): expected settings of .*beta1.*; got 'beta3'"):
        optim.adam(loss_and_gradient, facula.ones(3), {"beta3": 1})
