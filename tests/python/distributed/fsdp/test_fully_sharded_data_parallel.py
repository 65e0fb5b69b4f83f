"""FullyShardedDataParallel: steps as DistributedDataParallel's; whole and sharded states."""

import contextlib
import functools

import facula
import facula.distributed as dist
import pytest
from facula import nn
from facula.distributed import threads
from facula.distributed.algorithms._comm_hooks import default_hooks
from facula.distributed.device_mesh import init_device_mesh
from facula.distributed.fsdp import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateKeyType,
    ShardingStrategy,
    StateDictType,
)
from facula.distributed.fsdp import FullyShardedDataParallel as FSDP
from facula.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
from facula.distributed.fsdp.wrap import ModuleWrapPolicy, size_based_auto_wrap_policy
from facula.distributed.tensor import DTensor
from facula.nn.parallel import DistributedDataParallel
from sharded_models import Block, batch, made, same, steps, whole

BLOCKS = ModuleWrapPolicy({Block})


def wrapped(net, **options):
    return FSDP(net, auto_wrap_policy=options.pop("auto_wrap_policy", BLOCKS), **options)


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize(
    "options",
    [
        *({"sharding_strategy": s} for s in ShardingStrategy),
        {"backward_prefetch": None},
        {"backward_prefetch": BackwardPrefetch.BACKWARD_POST, "forward_prefetch": True},
        {"cpu_offload": CPUOffload(True), "use_orig_params": True},
    ],
    ids=str,
)
def test_steps_are_those_of_ddp(size, options):
    def work(rank):
        x, y = batch(rank, size)
        expected = steps(DistributedDataParallel(made()), x, y)
        net = wrapped(made(), **options)
        assert isinstance(net.module.blocks[0], FSDP) and net.check_is_root()
        return same(steps(net, x, y), expected)

    assert threads.run(work, size) == [True] * size


def test_hybrid_strategies_take_meshes_and_groups():
    def work(rank):
        x, y = batch(rank, 4)
        expected = steps(DistributedDataParallel(made()), x, y)
        mesh = init_device_mesh("cpu", (2, 2))
        groups = (mesh.get_group(1), mesh.get_group(0))
        found = [
            steps(wrapped(made(), sharding_strategy=ShardingStrategy.HYBRID_SHARD, **where), x, y)
            for where in ({"device_mesh": mesh}, {"process_group": groups})
        ]
        assert same(*found)
        return all(map(facula.allclose, found[0][1], expected[1]))

    assert threads.run(work, 4) == [True] * 4


def test_names_are_those_of_the_module():
    def work(rank):
        net, plain = wrapped(made()), made()
        names = [n for n, _ in plain.named_parameters()]
        assert [n for n, _ in net.named_parameters()] == names
        assert list(net.state_dict()) == list(plain.state_dict())
        assert net.first is net.module.first and len(FSDP.fsdp_modules(net)) == 3
        assert FSDP.fsdp_modules(net, root_only=True) == [net]
        assert net.check_is_root() and not net.blocks[0].check_is_root()

    threads.run(work, 2)


@pytest.mark.parametrize("kind", StateDictType, ids=str)
def test_state_dicts_load_again(kind):
    def work(rank):
        net, other = wrapped(made()), wrapped(made(seed=1))
        with FSDP.state_dict_type(net, kind), FSDP.state_dict_type(other, kind):
            state = net.state_dict()
            weight = state["blocks.0.up.weight"]
            assert isinstance(weight, DTensor) == (kind is StateDictType.SHARDED_STATE_DICT)
            rows = [8, 7][rank] if kind is StateDictType.LOCAL_STATE_DICT else 15
            assert weight.shape == (rows, 5)
            other.load_state_dict(state)
        assert FSDP.get_state_dict_type(net).state_dict_type is StateDictType.FULL_STATE_DICT
        return all(map(facula.equal, whole(net.parameters()), whole(other.parameters())))

    assert threads.run(work, 2) == [True, True]


def test_whole_states_can_be_of_rank_0_alone_and_load_elsewhere():
    def work(rank):
        net = wrapped(made())
        config = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
        with FSDP.state_dict_type(net, StateDictType.FULL_STATE_DICT, config):
            state = net.state_dict()
        if rank:
            return not state
        plain = made(seed=1)
        plain.load_state_dict(state)
        return all(map(facula.equal, plain.parameters(), made().parameters()))

    assert threads.run(work, 2) == [True, True]


def test_parameters_can_be_summoned_and_changed():
    def work(rank):
        net = wrapped(made())
        x, y = batch(rank, 2)
        nn.functional.mse_loss(net(x), y).backward()
        with FSDP.summon_full_params(net, with_grads=True), facula.no_grad():
            assert facula.equal(net.first.weight, made().first.weight)
            for p in net.parameters():
                assert not isinstance(p, DTensor) and p.grad.shape == p.shape
                p.mul_(2)
                p.grad.fill_(3)
        with FSDP.summon_full_params(net, writeback=False), facula.no_grad():
            net.first.weight.zero_()
        with FSDP.summon_full_params(net, writeback=False, rank0_only=True):
            assert isinstance(net.first.weight, DTensor) == bool(rank)
        with FSDP.summon_full_params(net.blocks[0]):
            assert isinstance(net.first.weight, DTensor)
        assert set(whole([net.first.weight.grad])[0].flatten().tolist()) == {3.0}
        net.apply(lambda m: isinstance(m, nn.Linear) and nn.init.zeros_(m.bias))
        assert not net.blocks[1].up.bias.full_tensor().any()
        return facula.equal(net.first.weight.full_tensor(), made().first.weight * 2)

    assert threads.run(work, 2) == [True, True]


def test_no_sync_accumulates():
    def step(net, x, y):
        with net.no_sync() if hasattr(net, "no_sync") else contextlib.nullcontext():
            (nn.functional.mse_loss(net(x[::2]), y[::2]) / 2).backward()
        loss = nn.functional.mse_loss(net(x[1::2]), y[1::2]) / 2
        loss.backward()
        return loss

    def work(rank):
        x, y = batch(rank, 2)
        expected = steps(DistributedDataParallel(made()), x, y, step=step)
        return same(steps(wrapped(made()), x, y, step=step), expected)

    assert threads.run(work, 2) == [True, True]


@pytest.mark.parametrize("norm_type", [2.0, 1.0, float("inf")])
@pytest.mark.parametrize("strategy", [ShardingStrategy.FULL_SHARD, ShardingStrategy.NO_SHARD])
def test_norms_are_those_of_whole_gradients(norm_type, strategy):
    def work(rank):
        x, y = batch(rank, 2)
        ddp, net = DistributedDataParallel(made()), wrapped(made(), sharding_strategy=strategy)
        for model in (ddp, net):
            nn.functional.mse_loss(model(x), y).backward()
        expected = nn.utils.clip_grad_norm_(ddp.parameters(), 0.5, norm_type)
        facula.testing.assert_close(net.clip_grad_norm_(0.5, norm_type), expected)
        grads = whole(p.grad for p in net.parameters())
        facula.testing.assert_close(grads, whole(p.grad for p in ddp.parameters()))

    threads.run(work, 2)


def trained(net, rank, count=2):
    x, y = batch(rank, 2)
    optim = facula.optim.Adam(net.parameters(), lr=0.05)
    for _ in range(count):
        optim.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        optim.step()
    return optim


def equal_states(a, b):
    for key, values in a["state"].items():
        for name, value in values.items():
            other = b["state"][key][name]
            value, other = whole([value])[0], whole([other])[0]
            if not facula.equal(value, other):
                return False
    return set(a["state"]) == set(b["state"])


@pytest.mark.parametrize("kind", ["full", "sharded", "scattered", "typed"])
def test_states_of_optimizers_go_by_names_and_load_again(kind):
    def work(rank):
        net, ddp = wrapped(made()), DistributedDataParallel(made())
        optim, plain = trained(net, rank), trained(ddp, rank)
        if kind == "full":
            state = FSDP.full_optim_state_dict(net, optim, rank0_only=False)
            to_load = FSDP.shard_full_optim_state_dict(state, net, optim=optim)
        elif kind == "scattered":
            state = FSDP.full_optim_state_dict(net, optim)
            assert bool(state) == (rank == 0)
            to_load = FSDP.scatter_full_optim_state_dict(state or None, net, optim=optim)
        elif kind == "sharded":
            state = FSDP.sharded_optim_state_dict(net, optim)
            to_load = FSDP.flatten_sharded_optim_state_dict(state, net, optim)
        else:
            config = FullOptimStateDictConfig()
            with FSDP.state_dict_type(net, StateDictType.FULL_STATE_DICT, None, config):
                state = FSDP.optim_state_dict(net, optim)
            to_load = FSDP.optim_state_dict_to_load(net, optim, state)
        if state:
            expected = FSDP.rekey_optim_state_dict(
                plain.state_dict(), OptimStateKeyType.PARAM_NAME, ddp.module
            )
            assert equal_states(state, expected)
            assert state["param_groups"][0]["params"] == [n for n, _ in net.named_parameters()]
        other = facula.optim.Adam(net.parameters(), lr=0.05)
        other.load_state_dict(to_load)
        return equal_states(other.state_dict(), optim.state_dict())

    assert threads.run(work, 2) == [True, True]


def test_mixed_precision_spares_norms_and_casts_buffers():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.norm = nn.Linear(3, 4), nn.BatchNorm1d(4)
            self.register_buffer("shift", facula.ones(4))

        def forward(self, x):
            y = self.linear(x)
            assert y.dtype == self.shift.dtype == facula.bfloat16
            assert self.norm.weight.dtype == self.norm.running_mean.dtype == facula.float32
            return self.norm(y + self.shift)

    def work(rank):
        mp = MixedPrecision(facula.bfloat16, facula.float32, facula.bfloat16)
        net = FSDP(Net(), mixed_precision=mp)
        out = net(batch(rank, 2)[0])
        out.float().sum().backward()
        return out.dtype, net.linear.weight.grad.dtype

    assert threads.run(work, 2) == [(facula.bfloat16, facula.float32)] * 2


def test_meta_modules_states_of_rank_0_and_what_is_ignored():
    def work(rank):
        with facula.device("meta"):
            net = Small()
        net = wrapped(net)
        assert not net.first.weight.is_meta

        facula.manual_seed(rank)
        other = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        other = FSDP(other, sync_module_states=True, ignored_modules=[other[1]])
        assert isinstance(other[0].weight, DTensor) and not isinstance(other[1].weight, DTensor)
        return other[0].weight.full_tensor().tolist()

    first, second = threads.run(work, 2)
    assert first == second


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.block = nn.Linear(3, 5), Block(5)

    def forward(self, x):
        return self.block(self.first(x))


def test_policies_by_size_wrap_from_the_inside():
    def work(rank):
        policy = functools.partial(size_based_auto_wrap_policy, min_num_params=100)
        net = FSDP(made(), auto_wrap_policy=policy)
        return [type(m) is FSDP for m in (net.first, *net.module.blocks, net.norm)]

    assert threads.run(work, 2)[0] == [False, True, True, False]


def test_hooks_communicate_gradients():
    def average(state, grad, shard=None):
        state.append(grad.numel())
        if shard is None:
            dist.all_reduce(grad)
            grad /= dist.get_world_size()
        else:
            dist.reduce_scatter_tensor(shard, grad)
            shard /= dist.get_world_size()

    def work(rank):
        x, y = batch(rank, 2)
        expected = steps(DistributedDataParallel(made()), x, y)
        found = []
        for strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.NO_SHARD):
            net, calls = wrapped(made(), sharding_strategy=strategy), []
            net.register_comm_hook(calls, average)
            found.append(same(steps(net, x, y), expected) and bool(calls))
        return found

    assert threads.run(work, 2) == [[True, True]] * 2


@pytest.mark.parametrize(
    "hook, tolerance",
    [
        (default_hooks.reduce_scatter_hook, 1e-6),
        (default_hooks.allreduce_hook, 1e-6),
        (default_hooks.fp16_compress_hook, 1e-2),
        (default_hooks.bf16_compress_hook, 5e-2),
    ],
)
def test_hooks_that_are_there_average(hook, tolerance):
    def work(rank):
        x, y = batch(rank, 2)
        ddp = DistributedDataParallel(made())
        is_whole = hook is default_hooks.allreduce_hook
        strategy = ShardingStrategy.NO_SHARD if is_whole else ShardingStrategy.FULL_SHARD
        net = wrapped(made(), sharding_strategy=strategy)
        net.register_comm_hook(default_hooks.LowPrecisionState(dist.group.WORLD), hook)
        for model in (ddp, net):
            nn.functional.mse_loss(model(x), y).backward()
        for p, q in zip(net.parameters(), ddp.parameters(), strict=True):
            found = whole([p.grad])[0]
            facula.testing.assert_close(found, q.grad, rtol=tolerance, atol=tolerance)

    threads.run(work, 2)


def test_scalers_agree_on_overflows():
    def work(rank):
        net = FSDP(nn.Linear(1, 2, bias=False))
        scaler = ShardedGradScaler("cpu", init_scale=4.0)
        optim = facula.optim.SGD(net.parameters(), lr=1.0)
        before = net.weight.full_tensor().clone()
        for scale in (1.0, float("inf")):
            optim.zero_grad()
            # One element of the gradient overflows: that of one rank's shard.
            out = (net(facula.ones(1, 1)) * facula.tensor([1.0, scale])).sum()
            scaler.scale(out).backward()
            scaler.step(optim)
            scaler.update()
        return (before - net.weight.full_tensor()).tolist(), scaler.get_scale()

    for moved, scale in threads.run(work, 2):
        facula.testing.assert_close(facula.tensor(moved), facula.ones(2, 1))
        assert scale == 2.0


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: FSDP(3), TypeError, "int"),
        (lambda: FSDP(FSDP(made())), ValueError, "wrapped"),
        (lambda: FSDP(made(), device_id="cuda:0"), NotImplementedError, "device_id"),
        (
            lambda: FSDP(made(), mixed_precision=MixedPrecision(keep_low_precision_grads=True)),
            NotImplementedError,
            "keep_low",
        ),
        (
            lambda: FSDP.set_state_dict_type(
                FSDP(made()), StateDictType.FULL_STATE_DICT, LocalStateDictConfig()
            ),
            RuntimeError,
            "FullStateDictConfig",
        ),
        (
            lambda: FSDP.summon_full_params(FSDP(made()), rank0_only=True).__enter__(),
            NotImplementedError,
            "both",
        ),
    ],
)
def test_misuse_says_so(call, error, text):
    def work(rank):
        with pytest.raises(error, match=text):
            call()

    threads.run(work, 1)
