"""Functions that change modules in place: contract, checkpoint, replicate."""

import copy

import facula
import pytest
from facula import nn
from facula.distributed import threads
from facula.distributed._composable import (
    _get_registry,
    checkpoint,
    contract,
    fully_shard,
    replicate,
)
from facula.nn.parallel import DistributedDataParallel
from sharded_models import Block, batch, made, same, steps


@contract()
def marked(module, new=False):
    if new:
        module.extra = nn.Parameter(facula.ones(1))
    return module


def test_contracts_are_made_once_and_keep_names():
    layer = marked(nn.Linear(1, 1))
    assert list(_get_registry(layer)) == ["marked"] and marked.state(layer) is not None
    assert _get_registry(nn.ReLU()) is None and marked.state(nn.ReLU()) is None
    with pytest.raises(AssertionError, match="marked"):
        marked(layer)
    with pytest.raises(RuntimeError, match="names"):
        marked(nn.Linear(1, 1), new=True)


def test_checkpoints_compute_again():
    calls = []

    class Counting(Block):
        def forward(self, x):
            calls.append(1)
            return super().forward(x)

    plain = Counting(3)
    again = checkpoint(copy.deepcopy(plain))
    x = facula.randn(2, 3)
    for net in (plain, again, copy.deepcopy(again)):
        net.zero_grad()
        net(x).sum().backward()
        assert facula.equal(net.up.weight.grad, plain.up.weight.grad)
    assert len(calls) == 1 + 2 + 2
    with pytest.raises(ValueError, match="depth"):
        checkpoint(nn.Linear(1, 1), depth=3)


def test_replicas_train_as_ddp():
    def work(rank):
        x, y = batch(rank, 2)
        expected = steps(DistributedDataParallel(made()), x, y)
        net = replicate(checkpoint(made()))
        assert type(net).__name__ == "DDPModel"
        return same(steps(net, x, y), expected)

    assert threads.run(work, 2) == [True, True]


def test_replicas_leave_modules_alone_and_accumulate():
    def work(rank):
        net = made()
        replicate(net, ignored_modules=[net.first])
        x, y = batch(rank, 2)
        net.set_requires_gradient_sync(False)
        nn.functional.mse_loss(net(x), y).backward()
        own = net.last.weight.grad.tolist()
        net.set_requires_gradient_sync(True)
        nn.functional.mse_loss(net(x), y).backward()
        with pytest.raises(RuntimeError, match="sharded"):
            replicate(fully_shard(nn.Linear(2, 2)))
        return own, net.last.weight.grad.tolist(), net.first.weight.grad.tolist()

    a, b = threads.run(work, 2)
    assert a[0] != b[0] and a[1] == b[1] and a[2] != b[2]
