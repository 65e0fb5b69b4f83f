"""The methods of FSDPModule that steer gathering and reduction."""

import facula
import facula.distributed as dist
import pytest
from facula import nn
from facula.distributed import threads
from facula.distributed.device_mesh import init_device_mesh
from facula.distributed.fsdp import GradientReductionHandle, fully_shard, share_comm_ctx
from facula.distributed.tensor import DTensor
from sharded_models import batch, made, same, steps, whole


def sharded(net=None, **options):
    net = made() if net is None else net
    for block in net.blocks:
        fully_shard(block, **options)
    return fully_shard(net, **options)


def passed(net, rank, size=2):
    """The gradients of one pass."""
    x, y = batch(rank, size)
    net.zero_grad()
    nn.functional.mse_loss(net(x), y).backward()
    return whole(p.grad for p in net.parameters())


def test_sums_are_divided_by_a_factor():
    def work(rank):
        net = sharded()
        expected = passed(net, rank)
        for module in (net, *net.blocks):
            module.set_gradient_divide_factor(1.0)
        return all(facula.equal(a, b * 2) for a, b in zip(passed(net, rank), expected, strict=True))

    assert threads.run(work, 2) == [True, True]


def test_hooks_see_averages():
    def work(rank):
        net = sharded()
        expected = passed(net, rank)
        for module in (net, *net.blocks):
            module.set_all_reduce_hook(lambda grad: grad.clamp_(max=0))
        return all(map(facula.equal, passed(net, rank), [g.clamp(max=0) for g in expected]))

    assert threads.run(work, 2) == [True, True]


def test_sums_over_shards_wait_for_copies():
    def work(rank):
        mesh = init_device_mesh("cpu", (2, 2))
        net = sharded(mesh=mesh)
        expected = passed(net, rank, 4)
        net.set_requires_all_reduce(False)
        net.zero_grad()
        x, y = batch(rank, 4)
        nn.functional.mse_loss(net(x), y).backward()
        assert all(p.grad is None for p in net.parameters())
        net.set_requires_all_reduce(True)
        nn.functional.mse_loss(net(x), y).backward()
        found = whole(p.grad for p in net.parameters())
        return all(facula.allclose(a, 2 * b) for a, b in zip(found, expected, strict=True))

    assert threads.run(work, 4) == [True] * 4


def test_reductions_are_waited_for_by_hand():
    def work(rank):
        net = sharded()
        expected = passed(net, rank)
        net.set_manual_backward_finalization(True)
        x, y = batch(rank, 2)
        net.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        assert any(p.grad is None for p in net.parameters())
        handle = net.finalize_backward(async_op=True)
        assert isinstance(handle, GradientReductionHandle)
        handle.wait()
        return all(map(facula.equal, whole(p.grad for p in net.parameters()), expected))

    assert threads.run(work, 2) == [True, True]


def test_a_pass_that_failed_can_be_forgotten():
    def work(rank):
        net = sharded()
        expected = passed(net, rank)
        x, y = batch(rank, 2)
        net.zero_grad()
        out = net(x)
        out.register_hook(lambda grad: None)
        net.blocks[0].up.weight.register_hook(_fail)
        handle = net.blocks[0]._fsdp_state.group.params[0].unsharded_param.register_hook(_fail)
        with pytest.raises(ValueError, match="no luck"):
            nn.functional.mse_loss(out, y).backward()
        handle.remove()
        net.reset_iter_state()
        assert all(isinstance(p, DTensor) for p in net.parameters())
        return all(map(facula.equal, passed(net, rank), expected))

    assert threads.run(work, 2) == [True, True]


def _fail(grad):
    raise ValueError("no luck")


def test_ranks_may_use_different_parameters():
    class Either(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)

        def forward(self, x, rank):
            return self.b(x) if rank else self.a(x)

    def work(rank):
        net = fully_shard(Either())
        net.set_reduce_scatter_unused_params(True)
        net(facula.ones(1, 2), rank).sum().backward()
        return [set(g.flatten().tolist()) for g in whole(p.grad for p in net.parameters())]

    assert threads.run(work, 2) == [[{0.5}, {0.5}]] * 2


def test_collectives_of_ones_own():
    calls = []

    def gather(output_tensor, input_tensor, group, async_op=False):
        calls.append("gather")
        return dist.all_gather_into_tensor(output_tensor, input_tensor, group, async_op)

    def reduce_scatter(output_tensor, input_tensor, group, op, async_op=False):
        calls.append("reduce")
        return dist.reduce_scatter_tensor(output_tensor, input_tensor, op, group, async_op)

    def work(rank):
        net = sharded()
        expected = passed(net, rank)
        net.set_custom_all_gather(gather)
        net.set_custom_reduce_scatter(reduce_scatter)
        return all(map(facula.equal, passed(net, rank), expected))

    assert threads.run(work, 2) == [True, True]
    assert sorted(calls) == ["gather"] * 2 + ["reduce"] * 2


@pytest.mark.parametrize("keep", [True, False])
def test_storage_may_stay(keep):
    def work(rank):
        net = sharded()
        net.set_keep_unsharded_storage(keep)
        expected = passed(sharded(), rank)
        assert all(map(facula.equal, passed(net, rank), expected))
        nbytes = net._fsdp_state.group.params[0]._storage.untyped_storage().nbytes()
        net.set_keep_unsharded_storage(False)
        return nbytes > 0, net._fsdp_state.group.params[0]._storage.untyped_storage().nbytes()

    assert threads.run(work, 2) == [(keep, 0)] * 2


def test_several_reductions_at_once_and_shared_contexts():
    def work(rank):
        x, y = batch(rank, 2)
        expected = steps(sharded(), x, y)
        net = sharded()
        net.set_reduce_scatter_max_input_buffers(3)
        other = sharded()
        share_comm_ctx([net, other])
        assert same(steps(net, x, y), expected)
        with pytest.raises(ValueError, match="above 0"):
            net.set_reduce_scatter_max_input_buffers(0)
        return same(steps(other, x, y), expected)

    assert threads.run(work, 2) == [True, True]


def test_lists_of_modules_are_one_group():
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 4), nn.Linear(4, 2)

        def forward(self, x):
            return self.b(self.a(x).tanh())

    def work(rank):
        x, y = batch(rank, 2)
        facula.manual_seed(0)
        base = Pair()
        values = {k: v.clone() for k, v in base.state_dict().items()}
        expected = steps(nn.parallel.DistributedDataParallel(base), x, y)
        net = Pair()
        net.load_state_dict(values)
        fully_shard([net.a, net.b])
        assert net.a._fsdp_state is net.b._fsdp_state
        fully_shard(net)
        return same(steps(net, x, y), expected)

    # Ranks that are threads share the generator: the second takes the first one's values.
    assert threads.run(work, 1) == [True]
