"""Modules whose names are found when they are asked for look like any other module."""

import inspect
import types

import facula
import facula.fft
import facula.linalg
import facula.nn
import facula.nn.functional
import facula.optim
import facula.special
import pytest

MODULES = {
    facula: "cat",
    facula.nn: "Linear",
    facula.nn.functional: "relu",
    facula.optim: "SGD",
    facula.linalg: "norm",
    facula.special: "expit",
}
each = pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)


@each
def test_names_are_found_and_kept(module):
    name = MODULES[module]
    found = getattr(module, name)
    assert vars(module)[name] is found
    assert getattr(module, name) is found
    assert name in dir(module)


@each
def test_missing_names_are_attribute_errors(module):
    assert not hasattr(module, "no_such_name")
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = module.no_such_name


@each
def test_attributes_are_set_and_deleted(module):
    module.own_name = 3
    assert module.own_name == vars(module)["own_name"] == 3
    del module.own_name
    assert not hasattr(module, "own_name")


@each
def test_they_are_modules(module):
    assert inspect.ismodule(module)
    assert isinstance(module, types.ModuleType)
    assert module.__dict__ is vars(module)
    assert repr(module).startswith(f"<module '{module.__name__}'")


def test_only_modules_become_lazy():
    for name in ("no.such.module", 3):
        with pytest.raises(TypeError, match="name of a module"):
            facula._C._lazy_module(name)
