"""Averaged models, their statistics and their schedule."""

import facula
import pytest
from facula import nn
from facula.optim import SGD
from facula.optim.swa_utils import (
    SWALR,
    AveragedModel,
    get_ema_avg_fn,
    get_ema_multi_avg_fn,
    get_swa_avg_fn,
    get_swa_multi_avg_fn,
    update_bn,
)


def _set(model, value):
    with facula.no_grad():
        for p in model.parameters():
            p.fill_(value)


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, 3.0),
        ({"avg_fn": get_swa_avg_fn()}, 3.0),
        ({"multi_avg_fn": get_swa_multi_avg_fn()}, 3.0),
        ({"avg_fn": get_ema_avg_fn(0.5)}, 3.75),
        ({"multi_avg_fn": get_ema_multi_avg_fn(0.5)}, 3.75),
    ],
)
def test_average_of_three(options, expected):
    model = nn.Linear(2, 1)
    averaged = AveragedModel(model, **options)
    for value in (1.0, 2.0, 6.0):
        _set(model, value)
        averaged.update_parameters(model)
    assert averaged.n_averaged == 3
    for p in averaged.parameters():
        assert facula.allclose(p, facula.full_like(p, expected))


def test_buffers_are_copied_or_averaged():
    for use_buffers, expected in ((False, 4.0), (True, 3.0)):
        model = nn.BatchNorm1d(1)
        averaged = AveragedModel(model, use_buffers=use_buffers)
        for value in (2.0, 4.0):
            model.running_mean.fill_(value)
            averaged.update_parameters(model)
        assert averaged.module.running_mean.item() == expected


def test_update_bn_gives_statistics_of_all_batches():
    model = nn.Sequential(nn.BatchNorm1d(1, momentum=0.3)).eval()
    update_bn([facula.tensor([[0.0], [2.0]]), (facula.tensor([[4.0], [6.0]]), "target")], model)
    assert model[0].running_mean.item() == pytest.approx(3.0)
    assert model[0].momentum == 0.3 and not model.training


def test_refusals():
    opt = SGD([nn.Parameter(facula.ones(1))], lr=0.1)
    with pytest.raises(AssertionError):
        AveragedModel(nn.Linear(1, 1), avg_fn=get_swa_avg_fn(), multi_avg_fn=get_swa_multi_avg_fn())
    for bad in ({"anneal_strategy": "x"}, {"anneal_epochs": -1}, {"swa_lr": [0.1, 0.2]}):
        with pytest.raises(ValueError):
            SWALR(opt, **{"swa_lr": 0.1, **bad})
    with pytest.raises(ValueError):
        get_ema_avg_fn(1.5)


def test_state_goes_on():
    model = nn.Linear(1, 1)
    averaged, other = AveragedModel(model), AveragedModel(model)
    averaged.update_parameters(model)
    other.load_state_dict(averaged.state_dict())
    assert other.n_averaged == 1
