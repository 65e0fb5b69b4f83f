"""fully_shard of modules whose parameters are cut by tensor parallelism already."""

import facula
import pytest
from facula import nn
from facula.distributed import threads
from facula.distributed.device_mesh import init_device_mesh
from facula.distributed.fsdp import fully_shard
from facula.distributed.tensor import Replicate, Shard, distribute_tensor
from facula.distributed.tensor.debug import CommDebugMode
from facula.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from facula.distributed.tensor.placement_types import _StridedShard
from sharded_models import batch, made, steps

PLAN = {"blocks.*.up": ColwiseParallel(), "blocks.*.down": RowwiseParallel()}


@pytest.mark.parametrize("optimizer", [facula.optim.AdamW, facula.optim.Adagrad])
def test_two_by_two_ranks_train_as_one(optimizer):
    losses, params = steps(made(width=6), *batch(0, 1), optimizer=optimizer)

    def work(rank):
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        net = parallelize_module(made(width=6), mesh["tp"], PLAN)
        for block in net.blocks:
            fully_shard(block, mesh=mesh["dp"])
        fully_shard(net, mesh=mesh["dp"])
        block = net.blocks[0]
        assert block.up.weight.placements == (_StridedShard(0, split_factor=2), Shard(0))
        assert block.down.weight.placements == (Shard(0), Shard(1))
        assert block.down.bias.placements == (Shard(0), Replicate())
        assert block.up.weight.to_local().shape[0] in (4, 5)  # of 18 rows
        found, whole = steps(net, *batch(rank // 2, 2), optimizer=optimizer)
        for a, b in zip(whole, params, strict=True):
            facula.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
        return found

    found = threads.run(work, 4)
    mean = [(a + b) / 2 for a, b in zip(found[0], found[2], strict=True)]
    assert mean == pytest.approx(losses, rel=1e-4) and found[0] == found[1]


@pytest.mark.parametrize("norm_type", [2.0, 1.0, 3.0, float("inf")])
def test_the_norm_of_all_gradients_takes_a_collective_for_each_dimension(norm_type):
    plain = made(width=6)
    x, target = batch(0, 1)
    nn.functional.mse_loss(plain(x), target).backward()
    grads = [p.grad.clone() for p in plain.parameters()]
    expected = nn.utils.clip_grad_norm_(plain.parameters(), 0.5, norm_type)

    def work(rank):
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        net = made(width=6)
        spread = [Shard(0), Shard(1)]
        for i, p in enumerate(net.parameters()):
            places = [spread[i % 2] if p.dim() > 1 else Shard(0), Replicate()][:: 1 - 2 * (i % 2)]
            p.grad = distribute_tensor(grads[i], mesh, places)
        with CommDebugMode() as counts:
            norm = nn.utils.clip_grad_norm_(net.parameters(), 0.5, norm_type)
        assert counts.get_total_counts() == 2
        found = [p.grad.full_tensor() for p in net.parameters()]
        facula.testing.assert_close(found, [p.grad for p in plain.parameters()])
        return norm.full_tensor()

    for norm in threads.run(work, 4):
        facula.testing.assert_close(norm, expected)
