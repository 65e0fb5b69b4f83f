"""The examples in the docstrings of DTensors and meshes give what they say."""

import doctest
from importlib import import_module

import facula
import pytest
from facula.distributed import tensor
from facula.distributed.tensor import _dispatch, _rules, experimental, parallel

MODULES = [
    "device_mesh",
    "tensor.debug._comm_mode",
    "tensor.debug._visualize_sharding",
    "tensor.experimental._attention",
    "tensor.experimental._func_map",
    "tensor.experimental._register_sharding",
    "tensor._api",
    "tensor._dispatch",
    "tensor._dtensor_spec",
    "tensor",
    "tensor._random",
    "tensor._redistribute",
    "tensor._utils",
    "tensor.parallel.api",
    "tensor.parallel.input_reshard",
    "tensor.parallel.loss",
    "tensor.placement_types",
]


@pytest.fixture(autouse=True)
def own_rules():
    """What examples register is gone after them: later tests of this process call operators."""
    before = dict(_rules.registered)
    yield
    _rules.registered.clear()
    _rules.registered.update(before)
    _dispatch.forget_plans()


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_say(name):
    module = import_module(f"facula.distributed.{name}")
    names = {"facula": facula}
    for space in (tensor, parallel, experimental):
        names |= {n: getattr(space, n) for n in space.__all__}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in doctest.DocTestFinder().find(module, extraglobs=names):
        runner.run(test)
    assert runner.tries > 0, f"{name} has no example"
    assert runner.failures == 0
