"""Every public class and function of sharded data parallelism says what it is; examples run."""

import doctest
import importlib
import inspect

import facula
import pytest

MODULES = [
    "facula.distributed.fsdp",
    "facula.distributed.fsdp.wrap",
    "facula.distributed.fsdp.sharded_grad_scaler",
    "facula.distributed._composable",
    "facula.distributed.algorithms._checkpoint.checkpoint_wrapper",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    module = importlib.import_module(name)
    names = {**vars(module), "facula": facula}
    for public in module.__all__:
        value = getattr(module, public)
        assert inspect.getdoc(value), public
        for test in doctest.DocTestFinder(recurse=True).find(value, public, module=False):
            test.globs = dict(names)
            result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
            assert result.failed == 0, test.name
