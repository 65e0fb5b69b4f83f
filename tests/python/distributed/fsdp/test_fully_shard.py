"""fully_shard: steps are those of DistributedDataParallel, parameters lie in shards meanwhile."""

import copy
import functools

import facula
import facula.distributed as dist
import pytest
from facula import nn
from facula.distributed import threads
from facula.distributed.device_mesh import init_device_mesh
from facula.distributed.fsdp import (
    CPUOffloadPolicy,
    DataParallelMeshDims,
    FSDPModule,
    MixedPrecisionPolicy,
    UnshardHandle,
    fully_shard,
    register_fsdp_forward_method,
)
from facula.distributed.tensor import DTensor, Replicate, Shard
from facula.nn.parallel import DistributedDataParallel
from sharded_models import Block, Model, batch, made, same, steps, whole


def shard(net, **options):
    for block in net.blocks:
        fully_shard(block, **options)
    return fully_shard(net, **options)


def test_shards_are_dtensors_and_the_class_tells():
    def work(rank):
        net = shard(made())
        assert isinstance(net, FSDPModule) and isinstance(net, Model)
        assert type(net).__name__ == "FSDPModel" and isinstance(net.blocks[0], FSDPModule)
        weight = net.blocks[0].up.weight
        assert isinstance(weight, nn.Parameter) and isinstance(weight, DTensor)
        assert weight.placements == (Shard(0),) and weight.shape == (15, 5)
        assert [n for n, _ in net.named_parameters()] == [n for n, _ in made().named_parameters()]
        return weight.to_local().shape[0], net.first.weight.to_local().shape[0]

    assert threads.run(work, 2) == [(8, 3), (7, 2)]


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize(
    "options, width",
    [
        ({}, 5),
        ({}, 256),  # wide enough for gathering without a buffer
        ({"reshard_after_forward": False}, 5),
        ({"reshard_after_forward": True}, 5),
        ({"offload_policy": CPUOffloadPolicy()}, 5),
        ({"shard_placement_fn": lambda p: Shard(p.dim() - 1)}, 5),
    ],
)
def test_steps_are_those_of_ddp(size, options, width):
    def work(rank):
        x, y = batch(rank, size)
        ddp = steps(DistributedDataParallel(made(width=width)), x, y)
        return same(steps(shard(made(width=width), **options), x, y), ddp)

    assert threads.run(work, size) == [True] * size


@pytest.mark.parametrize("optimizer", [facula.optim.SGD, facula.optim.Adam])
def test_integer_gradients_are_those_of_one_process(optimizer):
    # Sums of small integers are exact in any order.
    def net():
        made = nn.Sequential(nn.Linear(3, 5, bias=False), nn.Linear(5, 2, bias=False))
        with facula.no_grad():
            for i, p in enumerate(made.parameters()):
                p.copy_((facula.arange(p.numel()).view(p.shape) + i) % 3 - 1.0)
        return made

    x = facula.arange(24.0).view(8, 3) % 5

    def one_step(model, part):
        opt = optimizer(model.parameters(), lr=0.5)
        (model(part).sum() / part.shape[0]).backward()
        opt.step()
        return whole(model.parameters())

    expected = one_step(net(), x)

    def work(rank):
        found = one_step(fully_shard(net()), x[rank * 4 : rank * 4 + 4])
        return all(map(facula.equal, found, expected))

    assert threads.run(work, 2) == [True, True]


def test_hybrid_meshes_copy_shards():
    def work(rank):
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("copies", "shards"))
        x, y = batch(rank, 4)
        expected = steps(DistributedDataParallel(made()), x, y)
        net = shard(made(), mesh=mesh)
        assert net.first.weight.placements == (Replicate(), Shard(0))
        found = steps(net, x, y)
        # Four terms are added in another order.
        return all(map(facula.allclose, found[1], expected[1]))

    assert threads.run(work, 4) == [True] * 4


@pytest.mark.parametrize(
    "dims, placements",
    [
        (DataParallelMeshDims(shard="a"), (Shard(0),)),
        (DataParallelMeshDims(shard=("a", "b")), (Shard(0),)),
        (DataParallelMeshDims(replicate="b"), (Replicate(),)),
        (DataParallelMeshDims(shard="b", replicate="a"), (Replicate(), Shard(0))),
    ],
)
def test_dimensions_of_a_mesh_are_chosen_by_name(dims, placements):
    def work(rank):
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
        net = fully_shard(nn.Linear(3, 8), mesh=mesh, dp_mesh_dims=dims)
        assert net.weight.placements == placements
        net(facula.full((1, 3), float(rank))).sum().backward()
        return net.weight.grad.full_tensor()[0, 0].item()

    ranks = {"a": [0, 2], "b": [0, 1]}  # that rank 0 averages with
    names = dims.shard_names + dims.replicate_names
    of_rank_0 = [0, 1, 2, 3] if len(names) == 2 else ranks[names[0]]
    assert threads.run(work, 4)[0] == sum(of_rank_0) / len(of_rank_0)


def test_parameters_are_freed_and_gathered_where_needed():
    def work(rank):
        net = shard(made())
        seen = []

        def look(module, *_):
            weight = net.blocks[0].up.weight
            seen.append(isinstance(weight, DTensor))

        net.blocks[0].up.register_forward_hook(look)
        net.norm.register_forward_hook(look)
        x, y = batch(rank, 2)
        loss = nn.functional.mse_loss(net(x), y)
        look(None)
        assert not isinstance(net.first.weight, DTensor)  # the root keeps its own until backward
        storage = net.blocks[0]._fsdp_state.group.params[0]._storage
        assert storage.untyped_storage().nbytes() == 0
        loss.backward()
        look(None)
        assert isinstance(net.first.weight, DTensor)
        assert all(isinstance(p.grad, DTensor) for p in net.parameters())
        return seen

    assert threads.run(work, 2) == [[False, True, True, True]] * 2


def test_gradients_are_reduced_as_soon_as_backward_leaves_a_block():
    def work(rank):
        net = shard(made())
        order = []
        for i, block in enumerate(net.blocks):
            group = block._fsdp_state.group
            group.on_reduced = lambda i=i: order.append(i)
        net.first.weight.register_hook(lambda g: None)
        net.first.register_full_backward_hook(lambda *_: order.append("first"))
        x, y = batch(rank, 2)
        nn.functional.mse_loss(net(x.requires_grad_()), y).backward()
        return order

    assert threads.run(work, 2) == [[1, "first", 0]] * 2


def accumulated(reshard, net, x, y):
    """Two passes, of which the second one reduces."""
    for i in range(2):
        net.set_requires_gradient_sync(i == 1)
        net.set_is_last_backward(i == 1)
        net.set_reshard_after_backward(reshard or i == 1)
        loss = nn.functional.mse_loss(net(x[i::2]), y[i::2]) / 2
        loss.backward()
    return loss


@pytest.mark.parametrize("reshard", [True, False])
def test_gradients_are_accumulated_without_communication(reshard):
    def work(rank):
        x, y = batch(rank, 2)

        def ddp_step(net, x, y):
            with net.no_sync():
                (nn.functional.mse_loss(net(x[::2]), y[::2]) / 2).backward()
            loss = nn.functional.mse_loss(net(x[1::2]), y[1::2]) / 2
            loss.backward()
            return loss

        expected = steps(DistributedDataParallel(made()), x, y, step=ddp_step)
        net = shard(made())
        return same(steps(net, x, y, step=functools.partial(accumulated, reshard)), expected)

    assert threads.run(work, 2) == [True, True]


@pytest.mark.parametrize("reentrant", [True, False])
def test_activation_checkpoints(reentrant):
    def work(rank):
        x, y = batch(rank, 2)
        expected = steps(DistributedDataParallel(made()), x, y)
        return same(steps(shard(made(checkpointed=reentrant)), x, y), expected)

    assert threads.run(work, 2) == [True, True]


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(7, 4)
        self.block = Block(4)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens):
        return self.head(self.block(self.table(tokens)))


def test_shared_and_frozen_parameters():
    facula.manual_seed(3)
    base = Tied()
    base.block.up.weight.requires_grad_(False)
    tokens = facula.tensor([[1, 2, 6], [0, 5, 1]])

    def step(net, x, y):
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        return loss

    def work(rank):
        expected = steps(
            DistributedDataParallel(copy.deepcopy(base)), tokens[rank], tokens[1 - rank], step=step
        )
        net = copy.deepcopy(base)
        fully_shard(net.block)
        fully_shard(net)
        assert net.head.weight is net.table.weight
        found = steps(net, tokens[rank], tokens[1 - rank], step=step)
        assert net.head.weight is net.table.weight
        assert net.block.up.weight.grad is None
        return same(found, expected)

    assert threads.run(work, 2) == [True, True]


def test_mixed_precision_computes_and_reduces_in_other_dtypes():
    def work(rank):
        policy = MixedPrecisionPolicy(facula.bfloat16, facula.float32, output_dtype=facula.float64)
        net = fully_shard(made(), mp_policy=policy)
        dtypes = []
        net.blocks[0].up.register_forward_hook(
            lambda m, args, out: dtypes.extend([m.weight.dtype, args[0].dtype])
        )
        x, y = batch(rank, 2)
        out = net(x)
        nn.functional.mse_loss(out, y.double()).backward()
        assert dtypes == [facula.bfloat16] * 2 and out.dtype == facula.float64
        grad = net.first.weight.grad
        assert grad.dtype == net.first.weight.dtype == facula.float32

        half = made().to(facula.bfloat16)
        nn.functional.mse_loss(half(x.bfloat16()).double(), y.double()).backward()
        mean = half.first.weight.grad.float()
        dist.all_reduce(mean)
        return facula.allclose(grad.full_tensor(), mean / 2, rtol=0.05, atol=0.05)

    assert threads.run(work, 2) == [True, True]


def test_float16_gradients_are_divided_before_sums_overflow():
    def work(rank):
        net = fully_shard(nn.Linear(1, 2, bias=False).half())
        (net(facula.ones(1, 1).half()) * 30000.0).sum().backward()
        return net.weight.grad.full_tensor().tolist()

    assert threads.run(work, 4)[0] == [[30000.0], [30000.0]]


def test_state_dicts_are_of_dtensors_and_load():
    def work(rank):
        net, other = shard(made()), shard(made(seed=1))
        x, y = batch(rank, 2)
        net(x)  # the root is whole now; its state_dict is not
        state = net.state_dict()
        assert all(isinstance(t, DTensor) for t in state.values())
        other.load_state_dict(state)
        a, b = whole(net.parameters()), whole(other.parameters())
        assert all(map(facula.equal, a, b)) and facula.equal(other(x), net(x))
        state = {k: v.detach().clone() * 2 for k, v in state.items()}
        other.load_state_dict(state, assign=True)
        with facula.no_grad():
            for p in net.parameters():
                p.mul_(2)
        return facula.equal(other(x), net(x))

    assert threads.run(work, 2) == [True, True]


def test_meta_modules_are_made_in_shards():
    def work(rank):
        with facula.device("meta"):
            net = Model()
        shard(net)
        with pytest.raises(RuntimeError, match="meta"):
            net(facula.ones(1, 3))
        net = Model.__new__(Model)
        with facula.device("meta"):
            net.__init__()
        shard(net).to_empty(device="cpu")
        net.load_state_dict(shard(made()).state_dict())
        x, y = batch(rank, 2)
        return same(steps(net, x, y), steps(shard(made()), x, y))

    assert threads.run(work, 2) == [True, True]


def test_unshard_by_hand():
    def work(rank):
        net = shard(made())
        handle = net.unshard(async_op=True)
        assert isinstance(handle, UnshardHandle)
        handle.wait()
        assert facula.equal(net.first.weight, made().first.weight)
        assert isinstance(net.blocks[0].up.weight, DTensor)
        net.reshard()
        return isinstance(net.first.weight, DTensor)

    assert threads.run(work, 2) == [True, True]


def test_prefetching_by_hand_gives_the_same():
    def work(rank):
        x, y = batch(rank, 2)
        net = shard(made(blocks=3))
        net.set_modules_to_forward_prefetch([net.blocks[0], net.blocks[1]])
        net.blocks[0].set_modules_to_forward_prefetch([net.blocks[1], net.blocks[2]])
        net.blocks[2].set_modules_to_backward_prefetch([net.blocks[1], net.blocks[0]])
        return same(steps(net, x, y), steps(shard(made(blocks=3)), x, y))

    assert threads.run(work, 2) == [True, True]


def test_other_methods_gather_parameters_when_they_are_registered():
    class WithMethod(nn.Linear):
        def twice(self, x):
            return nn.functional.linear(x, self.weight * 2, self.bias)

    def work(rank):
        net = fully_shard(WithMethod(3, 3))
        register_fsdp_forward_method(net, "twice")
        net.twice(facula.ones(1, 3)).sum().backward()
        with pytest.raises(ValueError, match="thrice"):
            register_fsdp_forward_method(net, "thrice")
        return net.weight.grad.full_tensor().unique().tolist()

    assert threads.run(work, 2) == [[2.0], [2.0]]


def test_norms_are_those_of_whole_gradients():
    def work(rank):
        x, y = batch(rank, 2)
        norms = []
        for net in (DistributedDataParallel(made()), shard(made())):
            nn.functional.mse_loss(net(x), y).backward()
            norm = nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            norms.append(norm.full_tensor() if isinstance(norm, DTensor) else norm)
            norms.append(whole(p.grad for p in net.parameters()))
        facula.testing.assert_close(norms[0], norms[2])
        facula.testing.assert_close(norms[1], norms[3])

    threads.run(work, 2)


@pytest.mark.parametrize("dtype", [None, facula.bfloat16])
@pytest.mark.parametrize("dim", [0, 1])
def test_neighbours_may_keep_parameters_until_backward(dim, dtype):
    options = {"mp_policy": MixedPrecisionPolicy(dtype, facula.float32)}
    options["shard_placement_fn"] = lambda p: Shard(min(dim, p.dim() - 1))

    def work(rank):
        x, y = batch(rank, 4)
        expected = steps(shard(made(), **options), x, y)
        net = shard(made(), reshard_after_forward=2, **options)
        parts = [b._fsdp_state.group.post_forward for b in net.blocks]
        assert dist.get_process_group_ranks(parts[0].group) == [rank // 2 * 2, rank // 2 * 2 + 1]
        assert len({part.group for part in parts}) == 1
        kept = []

        def step(net, x, y):
            loss = nn.functional.mse_loss(net(x), y)
            kept.append([part.is_kept for part in parts])
            nn.functional.mse_loss(net(x), y)  # of which no backward takes what is kept
            loss.backward()
            kept.append([b._fsdp_state.group.is_unsharded for b in net.blocks])
            return loss

        net(x)  # what is kept of a pass before an optimizer's step is old
        found = steps(net, x, y, step=step)
        assert kept == [[True] * len(parts), [False] * len(parts)] * 3
        return same(found, expected)

    assert all(threads.run(work, 4))


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [(3, ValueError, "divide.*2; got 3"), (0, ValueError, "got 0"), ("no", TypeError, "'no'")],
)
def test_neighbours_are_a_part_of_the_ranks(value, error, text):
    def work(rank):
        with pytest.raises(error, match=text):
            fully_shard(made(), reshard_after_forward=value)

    threads.run(work, 2)


def test_an_optimizers_step_between_passes_without_gradients_is_seen():
    def work(rank):
        net = shard(made(), reshard_after_forward=False)
        x, _ = batch(rank, 2)
        with facula.no_grad():
            net(x)
            for p in net._fsdp_state.group.params:
                p.shard.zero_()
            return net(x).abs().sum().item()

    assert threads.run(work, 2) == [0.0, 0.0]


def test_errors_in_forward_leave_the_module_usable():
    def work(rank):
        net = shard(made())
        with pytest.raises(RuntimeError):
            net(facula.ones(2, 7))
        x, y = batch(rank, 2)
        return same(steps(net, x, y), steps(shard(made()), x, y))

    assert threads.run(work, 2) == [True, True]


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda net: fully_shard(net.blocks), ValueError, "has forward"),
        (lambda net: fully_shard(3), ValueError, "int"),
        (lambda net: fully_shard(fully_shard(net)), AssertionError, "again"),
        (lambda net: fully_shard(net, offload_policy=True), TypeError, "OffloadPolicy"),
        (lambda net: copy.deepcopy(fully_shard(net)), AssertionError, "deepcopy"),
        (
            lambda net: fully_shard(net).set_modules_to_forward_prefetch([net.norm]),
            ValueError,
            "Layer",
        ),
    ],
)
def test_misuse_says_so(call, error, text):
    def work(rank):
        with pytest.raises(error, match=text):
            call(made())

    threads.run(work, 1)
