"""fully_shard of modules whose parameters are cut by tensor parallelism already."""

import facula
import pytest
from facula.distributed import threads
from facula.distributed.device_mesh import init_device_mesh
from facula.distributed.fsdp import fully_shard
from facula.distributed.tensor import Replicate, Shard
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
