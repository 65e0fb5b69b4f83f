"""Signatures of modules and optimizers carry types, which tools that build command lines read."""

import inspect
import typing

import facula
import pytest
from facula import nn, optim


def _functions():
    for namespace in (nn, optim, optim.lr_scheduler, optim.swa_utils):
        for name in dir(namespace):
            found = getattr(namespace, name)
            for method in ("__init__", "forward", "step"):
                function = vars(found).get(method) if inspect.isclass(found) else None
                if inspect.isfunction(function):
                    yield pytest.param(function, id=f"{name}.{method}")


@pytest.mark.parametrize("function", _functions())
def test_types_can_be_found(function):
    typing.get_type_hints(function)


def test_types_of_a_layer():
    hints = typing.get_type_hints(nn.Linear.__init__)
    assert hints["in_features"] is int and hints["bias"] is bool
    assert typing.get_type_hints(nn.Linear.forward)["input"] is facula.Tensor
