"""Every public class and function of pipelines and of rpc says what it is; examples run."""

import doctest
import importlib
import inspect

import facula
import pytest

MODULES = [
    "facula.distributed.autograd",
    "facula.distributed.nn.api.remote_module",
    "facula.distributed.optim.optimizer",
    "facula.distributed.pipelining",
    "facula.distributed.pipelining._utils",
    "facula.distributed.pipelining.microbatch",
    "facula.distributed.pipelining.schedules",
    "facula.distributed.rpc",
    "facula.distributed.rpc.functions",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    module = importlib.import_module(name)
    names = {**vars(module), "facula": facula}
    for public in module.__all__:
        value = getattr(module, public)
        assert inspect.getdoc(value), public
        if not inspect.getmodule(value).__name__.startswith("facula.distributed"):
            continue
        for test in doctest.DocTestFinder(recurse=True).find(value, public, module=False):
            test.globs = dict(names)
            result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
            assert result.failed == 0, test.name
