"""Helpers of `_dynamo.utils` that packages import."""

import warnings
from collections import namedtuple

import facula
from facula._dynamo import utils

Pair = namedtuple("Pair", "a b")


def test_times_are_noted_by_name():
    with utils.dynamo_timed("a phase"):
        pass
    with utils.dynamo_timed("a phase"):
        pass
    names, times = utils.compile_times(repr="csv")
    assert len(times[names.index("a phase")].split(", ")) == 2
    names, times = utils.compile_times(repr="csv", aggregate=True)
    assert len(times[names.index("a phase")].split(", ")) == 1
    assert "a phase, " in utils.compile_times() and utils.compile_times(repr="json") is None


def test_named_tuples_are_told_from_tuples():
    results = facula.ones(2, 2).max(1)
    found = [utils.is_namedtuple(v) for v in (Pair(1, 2), results, (1, 2), facula.Size([1]))]
    assert found == [True, True, False, False]
    assert utils.namedtuple_fields(Pair) == ("a", "b")
    assert utils.namedtuple_fields(type(results)) == ("values", "indices")


def test_a_warning_is_given_once():
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        for _ in range(3):
            utils.warn_once("given once by this test")
    assert [str(w.message) for w in given] == ["given once by this test"]


def test_state_is_given_back():
    layer = facula.nn.Linear(2, 2)
    layer(facula.ones(1, 2)).sum().backward()
    weight, grad = layer.weight.detach().clone(), layer.weight.grad.clone()
    restore = utils.checkpoint_params(layer)
    first = facula.rand(2)
    for _ in range(2):
        with facula.no_grad():
            layer.weight.zero_()
            layer.weight.grad.zero_()
        restore()
        facula.testing.assert_close((layer.weight.detach(), layer.weight.grad), (weight, grad))
        facula.testing.assert_close(facula.rand(2), first)
    with utils.preserve_rng_state():
        inside = facula.rand(2)
    facula.testing.assert_close(facula.rand(2), inside)


def test_small_questions():
    assert utils.hashable(1) and not utils.hashable([])
    assert utils.nothing(1, a=2) is None
    assert utils.rmse(facula.tensor([3.0, 3.0]), facula.zeros(2)).item() == 3.0
