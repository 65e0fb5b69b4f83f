"""Public classes and functions of distributed say what they are, in examples that run."""

import doctest
import importlib
import inspect
import os
from unittest import mock

import facula
import pytest

MODULES = [
    "facula.distributed._composable",
    "facula.distributed.algorithms._checkpoint.checkpoint_wrapper",
    "facula.distributed.autograd",
    "facula.distributed.fsdp",
    "facula.distributed.fsdp.sharded_grad_scaler",
    "facula.distributed.fsdp.wrap",
    "facula.distributed.nn.api.remote_module",
    "facula.distributed.optim",
    "facula.distributed.pipelining",
    "facula.distributed.pipelining._utils",
    "facula.distributed.pipelining.microbatch",
    "facula.distributed.pipelining.schedules",
    "facula.distributed.rpc",
    "facula.distributed.rpc.functions",
    "facula.nn.parallel",
]


def is_documented_here(value):
    return getattr(inspect.getmodule(value), "__name__", "").startswith(("facula.dis", "facula.nn"))


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    module = importlib.import_module(name)
    names = {**vars(module), "facula": facula}
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for public in module.__all__:
        value = getattr(module, public)
        assert inspect.getdoc(value), public
        if not is_documented_here(value):
            continue
        home = vars(inspect.getmodule(value))
        for test in finder.find(value, public, module=False):
            test.globs = {**home, **names}
            with mock.patch.dict(os.environ):  # some say there where ranks meet
                assert runner.run(test).failed == 0, test.name
