"""unflatten: the tree gives the program's results, and its modules can be exchanged."""

import copy

import facula
import pytest
from export.trees import build
from facula import nn
from facula.export import FlatArgsAdapter, export, unflatten

TREES = build(facula)


@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.parametrize("name", TREES)
def test_tree_computes_what_the_module_computes(name, decomposed):
    module, args, kwargs = copy.deepcopy(TREES[name])
    program = export(module, args, kwargs)
    program = program.run_decompositions({}) if decomposed else program
    tree = unflatten(program)
    names = {n.partition("@")[0] for n, _ in tree.named_modules()}
    assert names == {n for n, _ in module.named_modules()}
    assert set(tree.state_dict()) == set(module.state_dict())
    facula.testing.assert_close(tree(*args, **kwargs), module(*args, **kwargs))
    facula.testing.assert_close(tree.state_dict(), module.state_dict())


def test_gradients_reach_the_tree_s_parameters():
    module, args, kwargs = copy.deepcopy(TREES["nested"])
    tree = unflatten(export(module, args, kwargs))
    for one in (module, tree):
        one(*args, **kwargs)["result"].sum().backward()
    for name, parameter in module.named_parameters():
        facula.testing.assert_close(tree.get_parameter(name).grad, parameter.grad)


def test_exchanged_module_is_called():
    module, args, kwargs = copy.deepcopy(TREES["nested"])
    tree = unflatten(export(module, args, kwargs))
    tree.rest = nn.Identity()
    module.rest = nn.Identity()
    facula.testing.assert_close(tree(*args, **kwargs), module(*args, **kwargs))


def test_tied_parameters_stay_one():
    module, args, _ = TREES["tied"]
    tree = unflatten(export(module, args))
    assert tree.first.weight is tree.second.weight
    assert tree.first.weight is not module.first.weight


class _AsPair(FlatArgsAdapter):
    def adapt(self, target_spec, input_spec, input_args, metadata=None, obj=None):
        return input_args[::-1]


def test_arguments_of_another_structure():
    module, (x,), kwargs = TREES["nested"]
    program = export(module, (x,), kwargs)
    with pytest.raises(TypeError, match="no flat_args_adapter"):
        unflatten(program)(x, kwargs["y"])
    tree = unflatten(program, _AsPair())
    facula.testing.assert_close(tree(kwargs["y"], x), module(x, **kwargs))
    with pytest.raises(RuntimeError, match=r"expected x.shape\[0\] == 2; got 3"):
        tree(facula.ones(3, 4), y=kwargs["y"])
