"""Sharded modules beside casts, inference mode, scalers, checkpoint wrappers, frozen parameters."""

import facula
import pytest
from facula import nn
from facula.amp import GradScaler
from facula.distributed import threads
from facula.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    apply_activation_checkpointing,
)
from facula.distributed.fsdp import FullyShardedDataParallel as FSDP
from facula.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from facula.distributed.fsdp.wrap import ModuleWrapPolicy
from facula.distributed.tensor import DTensor
from facula.nn.parallel import DistributedDataParallel
from sharded_models import Block, Model, batch, made, same, steps, whole


def shard(net, **options):
    for block in net.blocks:
        fully_shard(block, **options)
    return fully_shard(net, **options)


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("make", [shard, FSDP])
def test_casts_of_sharded_modules(make, used):
    def work(rank):
        x, y = (t.double() for t in batch(rank, 2))
        expected = steps(DistributedDataParallel(made().double()), x, y)
        net = make(made())
        if used:
            nn.functional.mse_loss(net(x.float()), y.float()).backward()
            net.zero_grad()
        return same(steps(net.double(), x, y), expected)

    assert threads.run(work, 2) == [True, True]


@pytest.mark.parametrize("stays", [False, True])
@pytest.mark.parametrize("mode", [facula.inference_mode, facula.no_grad])
def test_inference_comes_before_training(mode, stays):
    def work(rank):
        x, y = batch(rank, 2)
        net = shard(made(), **({"reshard_after_forward": False} if stays else {}))
        with mode():
            for _ in range(2):
                assert facula.allclose(net(x), made()(x))
            assert isinstance(net.first.weight, DTensor) != stays
        net.reshard()
        for block in net.blocks:
            block.reshard()
        expected = steps(DistributedDataParallel(made()), x, y)
        return same(steps(net, x, y), expected)

    assert threads.run(work, 2) == [True, True]


def test_scalers_see_overflows_of_all_shards():
    def work(rank):
        net = fully_shard(nn.Linear(1, 2, bias=False))
        before = net.weight.full_tensor().clone()
        scaler, optim = (
            GradScaler("cpu", init_scale=4.0),
            facula.optim.SGD(net.parameters(), lr=1.0),
        )
        for scale in (1.0, float("inf")):
            optim.zero_grad()
            # One element of the gradient overflows: that of one rank's shard.
            out = (net(facula.ones(1, 1)) * facula.tensor([1.0, scale])).sum()
            scaler.scale(out).backward()
            scaler.step(optim)
            scaler.update()
        return (before - net.weight.full_tensor()).flatten().tolist(), scaler.get_scale()

    for moved, scale in threads.run(work, 2):
        assert moved == pytest.approx([1.0, 1.0]) and scale == 2.0


def test_checkpoint_wrappers_within_wrappers_change_no_names():
    class Deeper(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = made(seed=1)

        def forward(self, x):
            return self.model(x)

    def work(rank):
        x, y = batch(rank, 2)
        expected = steps(DistributedDataParallel(made()), x, y)
        net = FSDP(Deeper(), auto_wrap_policy=ModuleWrapPolicy({Model}))
        is_block = lambda module: isinstance(module, Block)  # noqa: E731
        apply_activation_checkpointing(net, check_fn=is_block)
        plain = Deeper()
        assert list(net.state_dict()) == list(plain.state_dict())
        net.load_state_dict({f"model.{k}": v for k, v in made().state_dict().items()})
        return same(steps(net, x, y), expected)

    assert threads.run(work, 2) == [True, True]


def test_parameters_that_are_ignored_stay_plain():
    def work(rank):
        net = made()
        shard(net, ignored_params={net.norm.weight, net.blocks[0].up.bias})
        plain = [n for n, p in net.named_parameters() if not isinstance(p, DTensor)]
        net(batch(rank, 2)[0]).sum().backward()
        return plain, net.norm.weight.grad.tolist()

    a, b = threads.run(work, 2)
    assert a[0] == ["blocks.0.up.bias", "norm.weight"] and a[1] != b[1]


def test_parameters_may_have_dtypes_of_their_own():
    def work(rank):
        net = made()
        policy = MixedPrecisionPolicy(
            facula.bfloat16,
            param_dtype_override_fn=lambda p: facula.float32 if p.dim() == 1 else None,
        )
        fully_shard(net.blocks[0].up, mp_policy=policy, reshard_after_forward=False)
        seen = []

        def look(module, args):
            seen.extend([module.weight.dtype, module.bias.dtype, args[0].dtype])

        handle = net.blocks[0].up.register_forward_pre_hook(look)
        with pytest.raises(RuntimeError):
            net.blocks[0].up(facula.ones(1, 5))  # a layer takes one dtype
        handle.remove()
        return seen

    expected = [facula.bfloat16, facula.float32, facula.bfloat16]
    assert threads.run(work, 2) == [expected, expected]


def test_frozen_parameters_may_thaw():
    def work(rank):
        net = shard(made())
        x, y = batch(rank, 2)
        net.blocks[0].requires_grad_(False)
        nn.functional.mse_loss(net(x), y).backward()
        assert net.blocks[0].up.weight.grad is None and net.blocks[1].up.weight.grad is not None
        net.blocks[0].requires_grad_(True)
        net.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        ddp = DistributedDataParallel(made())
        nn.functional.mse_loss(ddp(x), y).backward()
        grads = whole(p.grad for p in net.parameters())
        return all(map(facula.equal, grads, whole(p.grad for p in ddp.parameters())))

    assert threads.run(work, 2) == [True, True]
