"""The examples in the docstrings of facula.optim run and print what they say."""

import doctest
import importlib

import facula
import pytest

MODULES = ["_adafactor", "_muon", "_stateless", "lbfgs", "swa_utils"]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    module = importlib.import_module(f"facula.optim.{name}")
    result = doctest.testmod(module, extraglobs={"facula": facula})
    assert result.attempted > 0 and result.failed == 0
