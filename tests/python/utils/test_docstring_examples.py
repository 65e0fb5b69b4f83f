"""The examples in the docstrings of what surrounds tensors give what they say."""

import doctest
from importlib import import_module

import facula
import pytest

MODULES = [
    "__config__",
    "_decomp",
    "_determinism",
    "_precision",
    "amp.autocast_mode",
    "amp.grad_scaler",
    "autograd.profiler",
    "autograd.profiler_util",
    "backends.cudnn",
    "backends.cuda",
    "backends.kleidiai",
    "backends.mha",
    "backends.mkl",
    "backends.mkldnn",
    "backends.mps",
    "backends.nnpack",
    "backends.openmp",
    "backends.opt_einsum",
    "monitor",
    "profiler",
    "profiler.profiler",
    "random",
    "testing._comparison",
    "testing._creation",
    "_dynamo.backends.common",
    "_dynamo.backends.registry",
    "_dynamo.decorators",
    "_dynamo.eval_frame",
    "_functorch._min_cut",
    "_functorch.aot_autograd",
    "_functorch.compilers",
    "_functorch.make_functional",
    "_jit_internal",
    "compiler",
    "distributed.distributed_c10d",
    "distributed.elastic.multiprocessing.api",
    "distributed.elastic.multiprocessing.errors",
    "distributed.rendezvous",
    "distributed.run",
    "nn.parallel.distributed",
    "futures",
    "fx.experimental.proxy_tensor",
    "jit._script",
    "jit._settings",
    "jit._trace",
    "nn.parallel.data_parallel",
    "nn.parallel.parallel_apply",
    "utils._pytree",
    "utils._pytree_nodes",
    "utils.benchmark.compare",
    "utils.benchmark.measurement",
    "utils.benchmark.timer",
    "utils.collect_env",
    "utils.flop_counter",
    "utils.tensorboard.writer",
    "utils.weak",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_say(name):
    module = import_module(f"facula.{name}")
    found = doctest.DocTestFinder().find(module, extraglobs={"facula": facula})
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in found:
        runner.run(test)
    assert runner.tries > 0, f"{name} has no example"
    assert runner.failures == 0
