"""DistributedDataParallel: steps as those of one process with the whole batch."""

import facula
import facula.distributed as dist
import pytest
from facula import nn
from facula.distributed.algorithms import ddp_comm_hooks
from facula.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from facula.nn.parallel import DistributedDataParallel
from ranks import outputs

SIZE = 3


def model(seed=0):
    g = facula.Generator()
    g.manual_seed(seed)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2))
    with facula.no_grad():
        for p in net.parameters():
            p.copy_(facula.randn(p.shape, generator=g))
    return net


def batch():
    g = facula.Generator()
    g.manual_seed(7)
    return facula.randn(SIZE * 4, 4, generator=g), facula.randn(SIZE * 4, 2, generator=g)


def steps(net, inputs, targets, count=3):
    optimizer = facula.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(count):
        optimizer.zero_grad()
        nn.functional.mse_loss(net(inputs), targets).backward()
        optimizer.step()
    return [p.detach().clone() for p in net.parameters()]


def part(tensor, rank):
    return tensor[rank * 4 : rank * 4 + 4]


def on_ranks(work, size=SIZE):
    return dist.threads.run(work, size)


OPTIONS = {
    "default": {},
    "small buckets": {"bucket_cap_mb": 1e-5},
    "list of sizes": {"bucket_cap_mb_list": [1e-5, 1e-4]},
    "views": {"gradient_as_bucket_view": True},
    "views in small buckets": {"gradient_as_bucket_view": True, "bucket_cap_mb": 1e-5},
    "unused": {"find_unused_parameters": True},
    "static": {"static_graph": True, "bucket_cap_mb": 1e-5},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_steps_are_those_of_one_process(options):
    inputs, targets = batch()
    expected = steps(model(), inputs, targets)

    def work(rank):
        ddp = DistributedDataParallel(model(seed=rank), **options)
        return steps(ddp, part(inputs, rank), part(targets, rank))

    for found in on_ranks(work):
        for a, b in zip(found, expected, strict=True):
            facula.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_buckets_are_rebuilt_in_the_order_of_gradients():
    def work(rank):
        ddp = DistributedDataParallel(model(), bucket_cap_mb=1e-5)
        shapes = []

        def hook(state, bucket: dist.GradBucket) -> facula.futures.Future[facula.Tensor]:
            sizes = [list(p.shape) for p in bucket.parameters()]
            shapes.append([bucket.index(), bucket.is_last(), *sizes])
            assert bucket.buffer().numel() == sum(g.numel() for g in bucket.gradients())
            return default_hooks.allreduce_hook(None, bucket)

        ddp.register_comm_hook(None, hook)
        for _ in range(2):
            ddp(facula.ones(1, 4)).sum().backward()
        return shapes[-len(ddp.reducer.buckets) :]

    found = on_ranks(work, 2)
    assert found[0] == found[1] and [s[0] for s in found[0]] == list(range(len(found[0])))
    assert found[0][0][2] in ([2], [2, 6]) and found[0][-1][2] in ([8], [8, 4])
    assert [s[1] for s in found[0]] == [False] * (len(found[0]) - 1) + [True]


def test_gradients_are_views_of_buckets():
    def work(rank):
        ddp = DistributedDataParallel(model(), gradient_as_bucket_view=True)
        ddp(facula.ones(1, 4)).sum().backward()
        before = [p.grad.clone() for p in ddp.parameters()]
        ddp.zero_grad(set_to_none=False)
        ddp(facula.ones(1, 4)).sum().backward()
        for a, p in zip(before, ddp.parameters(), strict=True):
            facula.testing.assert_close(a, p.grad)
        return all(p.grad._base is not None for p in ddp.parameters())

    assert all(on_ranks(work, 2))


def test_no_sync_accumulates():
    inputs, _ = batch()

    def work(rank):
        ddp = DistributedDataParallel(model())
        with ddp.no_sync():
            assert not ddp.require_backward_grad_sync
            ddp(part(inputs, rank)).sum().backward()
        own = ddp.module[0].weight.grad.clone()
        ddp(part(inputs, rank)).sum().backward()
        return own, ddp.module[0].weight.grad

    found = on_ranks(work)
    expected = sum(2 * own for own, _ in found) / SIZE
    assert not facula.allclose(found[0][0], found[1][0])
    for _, total in found:
        facula.testing.assert_close(total, expected)


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(1, 1), nn.Linear(1, 1), nn.Linear(1, 1)

    def forward(self, x, which):
        return self.a(x) + (self.b(x) if which else 0)


def test_unused_parameters():
    def work(rank):
        ddp = DistributedDataParallel(Branches(), find_unused_parameters=True)
        for _ in range(2):
            ddp.zero_grad()
            ddp(facula.ones(1, 1), rank == 1).sum().backward()
        return [None if p.grad is None else p.grad.item() for p in ddp.parameters()]

    # b is used by one of two ranks, c by none.
    for found in on_ranks(work, 2):
        assert found == [1.0, 1.0, 0.5, 0.5, None, None]


def test_a_pass_without_some_parameters_is_named():
    def work(rank):
        ddp = DistributedDataParallel(Branches())
        ddp(facula.ones(1, 1), True).sum().backward()
        with pytest.raises(RuntimeError, match=r"got none for c.weight, c.bias.*find_unused"):
            ddp(facula.ones(1, 1), True)
        return True

    assert all(on_ranks(work, 2))


def test_static_graphs_learn_what_is_unused():
    def work(rank):
        ddp = DistributedDataParallel(Branches(), static_graph=True)
        for _ in range(3):
            ddp.zero_grad()
            ddp(facula.full((1, 1), rank + 1.0), True).sum().backward()
        return [None if p.grad is None else p.grad.item() for p in ddp.parameters()]

    for found in on_ranks(work, 2):
        assert found == [1.5, 1.0, 1.5, 1.0, None, None]


def test_sparse_gradients():
    def work(rank):
        net = nn.Sequential(nn.Embedding(5, 2, sparse=True), nn.Linear(2, 1))
        ddp = DistributedDataParallel(net)
        for _ in range(2):
            ddp.zero_grad()
            ddp(facula.tensor([rank, 4])).sum().backward()
        grad = net[0].weight.grad
        assert grad.is_sparse
        return (grad.to_dense() != 0).any(1).tolist()

    assert on_ranks(work, 2) == [[True, True, False, False, True]] * 2


def test_buffers_come_from_rank_0():
    def work(rank):
        net = nn.BatchNorm1d(2)
        net.running_mean.fill_(float(rank))
        ddp = DistributedDataParallel(net)
        at_start = net.running_mean.tolist()
        net.running_mean.fill_(float(rank + 5))
        assert ddp.will_sync_module_buffers() and ddp.broadcast_buffers
        ddp.eval()(facula.ones(1, 2))
        kept = DistributedDataParallel(nn.BatchNorm1d(2), broadcast_buffers=False)
        assert not kept.will_sync_module_buffers()
        return at_start, net.running_mean.tolist()

    assert on_ranks(work, 2) == [([0.0, 0.0], [5.0, 5.0])] * 2


@pytest.mark.parametrize(
    "hook, tolerance",
    [
        (default_hooks.allreduce_hook, 1e-5),
        (default_hooks.fp16_compress_hook, 5e-3),
        (default_hooks.bf16_compress_hook, 5e-2),
        (default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook), 5e-3),
        (default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook), 5e-2),
    ],
)
def test_communication_hooks(hook, tolerance):
    inputs, targets = batch()
    expected = steps(model(), inputs, targets)

    def work(rank):
        ddp = DistributedDataParallel(model())
        ddp.register_comm_hook(None, hook)
        with pytest.raises(RuntimeError, match="once"):
            ddp.register_comm_hook(None, hook)
        return steps(ddp, part(inputs, rank), part(targets, rank))

    for found in on_ranks(work):
        for a, b in zip(found, expected, strict=True):
            facula.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def test_power_sgd_averages_matrices_of_low_rank():
    def work(rank):
        ddp = DistributedDataParallel(nn.Linear(16, 16, bias=False))
        state = powerSGD_hook.PowerSGDState(None, 1, start_powerSGD_iter=2)
        ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        for _ in range(4):
            ddp.zero_grad()
            # Of rank one at each rank, and summed: the rows differ by a factor only.
            ddp(facula.arange(16.0)[None] * (rank + 1)).sum().backward()
        return ddp.module.weight.grad

    expected = facula.arange(16.0)[None].expand(16, 16) * 1.5
    for found in on_ranks(work, 2):
        facula.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="above 1"):
        powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=1)


def test_hooks_by_name():
    def work(rank):
        ddp = DistributedDataParallel(nn.Linear(1, 1))
        ddp_comm_hooks.register_ddp_comm_hook(ddp_comm_hooks.DDPCommHookType.NOOP, ddp)
        ddp(facula.full((1, 1), float(rank))).sum().backward()
        return ddp.module.weight.grad.item()

    assert on_ranks(work, 2) == [0.0, 1.0]


@pytest.mark.parametrize("by_initial", [True, False])
def test_uneven_inputs(by_initial):
    def work(rank):
        net = nn.Linear(1, 1, bias=False)
        nn.init.zeros_(net.weight)
        ddp = DistributedDataParallel(net)
        optimizer = facula.optim.SGD(ddp.parameters(), lr=1.0)
        with ddp.join(divide_by_initial_world_size=by_initial):
            for _ in range(1 + 2 * rank):
                optimizer.zero_grad()
                ddp(facula.ones(1, 1)).sum().backward()
                optimizer.step()
        return ddp.module.weight.item()

    # One step of both ranks, then two of one.
    assert on_ranks(work, 2) == [-1 - 2 * (0.5 if by_initial else 1.0)] * 2


def test_the_end_of_one_can_end_all():
    def work(rank):
        ddp = DistributedDataParallel(nn.Linear(1, 1))
        with pytest.raises(RuntimeError, match="no more inputs"):
            with ddp.join(throw_on_early_termination=True):
                for _ in range(1 + rank):
                    ddp(facula.ones(1, 1)).sum().backward()
        return True

    assert all(on_ranks(work, 2))


def test_bad_arguments():
    def work(rank):
        linear = nn.Linear(1, 1)
        ddp = DistributedDataParallel(linear)
        for call, error, text in (
            (lambda: DistributedDataParallel(nn.ReLU()), RuntimeError, "none"),
            (lambda: DistributedDataParallel(nn.LazyLinear(1)), RuntimeError, "initialized"),
            (lambda: DistributedDataParallel(linear, [0]), ValueError, "device_ids"),
            (lambda: ddp.register_comm_hook(None, 3), TypeError, "expected a function"),
            (ddp.finalize_backward, RuntimeError, "require_manual"),
        ):
            with pytest.raises(error, match=text):
                call()
        different = nn.Linear(1 + rank, 1)
        with pytest.raises(RuntimeError, match=r"same parameters.*\(1, 1\).*\(1, 2\)"):
            DistributedDataParallel(different)
        return list(ddp.state_dict()), ddp.join_device.type

    assert on_ranks(work, 2) == [(["module.weight", "module.bias"], "cpu")] * 2
    with pytest.raises(ValueError, match="not been initialized"):
        DistributedDataParallel(nn.Linear(1, 1))


def test_processes(tmp_path):
    program = """
    from facula import nn
    net = nn.Linear(2, 1)
    ddp = nn.parallel.DistributedDataParallel(net)
    for _ in range(3):
        ddp.zero_grad()
        ddp(facula.full((1, 2), float(rank))).sum().backward()
    print(net.weight.grad.tolist(), net.bias.grad.tolist())
    dist.destroy_process_group()
    """
    assert outputs(program, 2, tmp_path) == ["[[0.5, 0.5]] [1.0]\n"] * 2


def test_samplers_know_their_rank():
    def work(rank):
        sampler = facula.utils.data.DistributedSampler(range(10), shuffle=False)
        shuffled = facula.utils.data.DistributedSampler(range(10), seed=3)
        shuffled.set_epoch(2)
        return list(sampler), list(shuffled), len(sampler)

    (first, mixed, _), (second, mixed_too, count) = on_ranks(work, 2)
    assert first == [0, 2, 4, 6, 8] and second == [1, 3, 5, 7, 9] and count == 5
    assert sorted(mixed + mixed_too) == list(range(10)) and mixed != first
    with pytest.raises(ValueError, match="not been initialized"):
        facula.utils.data.DistributedSampler(range(10))
