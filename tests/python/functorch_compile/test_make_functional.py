"""Modules as functions of their parameters and buffers."""

import facula
import pytest
from facula import functorch, nn


def test_a_module_is_a_function_of_its_parameters():
    module, x = nn.Linear(3, 2), facula.ones(4, 3)
    function, params = functorch.make_functional(module)
    assert facula.equal(function(params, x), module(x)) and params[0] is module.weight
    halved = [p.detach() / 2 for p in params]
    assert facula.allclose(function(halved, x), module(x) / 2)
    gradient = functorch.grad(lambda p: function(p, x).sum())(params)
    module(x).sum().backward()
    assert facula.equal(gradient[0], module.weight.grad)
    assert not functorch.make_functional(module, disable_autograd_tracking=True)[1][0].requires_grad


def test_buffers_are_given_too():
    module, x = nn.BatchNorm1d(3).eval(), facula.arange(12.0).reshape(4, 3)
    with pytest.raises(RuntimeError, match="with_buffers"):
        functorch.make_functional(module)
    function, params, buffers = functorch.make_functional_with_buffers(module)
    assert facula.equal(function(params, buffers, x), module(x))


def test_an_ensemble_runs_under_vmap():
    models, x = [nn.Linear(3, 2) for _ in range(4)], facula.ones(5, 3)
    function, params, buffers = functorch.combine_state_for_ensemble(models)
    results = functorch.vmap(function, in_dims=(0, 0, None))(params, buffers, x)
    assert results.shape == (4, 5, 2)
    assert all(facula.allclose(r, m(x), atol=1e-6) for r, m in zip(results, models, strict=True))
    assert params[0].is_leaf and params[0].requires_grad
    with pytest.raises(RuntimeError, match="one class"):
        functorch.combine_state_for_ensemble([nn.Linear(3, 2), nn.ReLU()])
