"""Pipelines of data parallel stages on a 2x2 mesh: gradients are those of one process."""

import copy

import facula
import pytest
from facula import nn
from facula.distributed import init_device_mesh, threads
from facula.distributed._composable import replicate
from facula.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from facula.distributed.pipelining import PipelineStage, schedules
from facula.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from facula.nn.parallel import DistributedDataParallel

F = nn.functional
MICROBATCHES = 4
STAGES = {"1F1B": 1, "GPipe": 1, "InterleavedZeroBubble": 2, "ZBVZeroBubble": 2}


def parts(n):
    """The model in `n` parts; layers are normalized, so that gradients do not fade."""
    facula.manual_seed(1)
    layers = [nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 6)) for _ in range(4)]
    return [nn.Sequential(*layers[i * 4 // n : (i + 1) * 4 // n]) for i in range(n)]


def batch(part, of):
    """A part of the rows of each microbatch: its gradients average to those of the whole."""
    facula.manual_seed(2)
    x, target = facula.randn(MICROBATCHES, 4, 6), facula.randn(MICROBATCHES, 4, 6)
    rows = slice(part * 4 // of, (part + 1) * 4 // of)
    return [t[:, rows].reshape(-1, 6) for t in (x, target)]


def in_ddp(module, mesh):
    return DistributedDataParallel(module, process_group=mesh.get_group())


def replicated(module, mesh):
    return replicate(module, process_group=mesh.get_group())


def sharded(module, mesh):
    return fully_shard(module, mesh=mesh)


def sharded_by_layer(module, mesh):
    for layer in module:
        fully_shard(layer, mesh=mesh, reshard_after_forward=True)
    return fully_shard(module, mesh=mesh)


def sharded_layers_alone(module, mesh):
    for layer in module:
        fully_shard(layer, mesh=mesh)
    return module


WRAPS = [in_ddp, replicated, sharded, sharded_by_layer, sharded_layers_alone]


def expected(steps):
    model = nn.Sequential(*parts(1))
    optimizer = facula.optim.SGD(model.parameters(), lr=0.5)
    x, target = batch(0, 1)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), target)
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return losses, [p.grad for p in model.parameters()]


def whole(tensor):
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor.clone()


def trained(schedule, wrap, steps=3, finalize=True, **options):
    """What each rank found."""
    models, batches = parts(2 * STAGES[schedule]), [batch(i, 2) for i in range(2)]
    return threads.run(train, 4, (schedule, wrap, steps, finalize, models, batches, options))


def train(rank, schedule, wrap, steps, finalize, models, batches, options):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pipeline", "data"))
    group, data = mesh["pipeline"].get_group(), mesh["data"]
    place, copy_number = mesh["pipeline"].get_local_rank(), data.get_local_rank()
    local = STAGES[schedule]
    mine = [place, 3 - place] if schedule == "ZBVZeroBubble" else [place, place + 2][:local]
    modules = [wrap(copy.deepcopy(models[i]), data) for i in mine]
    stages = [
        PipelineStage(module, i, 2 * local, facula.device("cpu"), group=group)
        for module, i in zip(modules, mine, strict=True)
    ]
    kind = schedules.get_schedule_class(schedule)
    is_single = issubclass(kind, schedules.PipelineScheduleSingle)
    pipeline = kind(stages[0] if is_single else stages, MICROBATCHES, F.mse_loss, **options)
    x, target = batches[copy_number]
    optimizer = facula.optim.SGD([p for m in modules for p in m.parameters()], lr=0.5)
    curve = []
    first, last = 0 in mine, 2 * local - 1 in mine
    for step in range(steps):
        losses = []
        if finalize:
            optimizer.zero_grad()
        pipeline.step(
            *((x,) if first else ()),
            target=target if last else None,
            losses=losses,
            finalize_gradients=finalize or step == steps - 1,
        )
        if finalize:
            optimizer.step()
        curve.append(sum(loss.item() for loss in losses) / MICROBATCHES)
    grads = {i: [whole(p.grad) for p in m.parameters()] for i, m in zip(mine, modules, strict=True)}
    return curve if last else None, grads


def check(results, losses, grads, tolerance=1e-5):
    for ranks in (results[0::2], results[1::2]):  # of each copy
        found = {}
        for _, of_rank in ranks:
            found.update(of_rank)
        found = [g for i in sorted(found) for g in found[i]]
        facula.testing.assert_close(found, grads, rtol=tolerance, atol=tolerance)
    curves = [curve for curve, _ in results if curve is not None]
    assert len(curves) == 2
    mean = [sum(pair) / 2 for pair in zip(*curves, strict=True)]
    assert mean == pytest.approx(losses, rel=1e-4 if tolerance < 1e-4 else 1e-1)


@pytest.mark.parametrize("schedule", STAGES)
@pytest.mark.parametrize("wrap", WRAPS, ids=lambda wrap: wrap.__name__)
def test_curves_and_gradients_are_those_of_one_process(wrap, schedule):
    check(trained(schedule, wrap), *expected(3))


@pytest.mark.parametrize("wrap", [in_ddp, sharded_by_layer], ids=lambda wrap: wrap.__name__)
def test_gradients_of_several_batches_add_up(wrap):
    _, grads = expected(1)
    losses = expected(1)[0] * 3
    grads = [3 * g for g in grads]
    check(trained("1F1B", wrap, 3, False), losses, grads)


@pytest.mark.parametrize("wrap", WRAPS, ids=lambda wrap: wrap.__name__)
def test_reductions_may_go_on_while_other_stages_compute(wrap):
    found = trained("InterleavedZeroBubble", wrap, defer_reduce_grad_wait=True)
    check(found, *expected(3))


def test_stages_compute_in_a_narrow_dtype():
    policy = MixedPrecisionPolicy(facula.bfloat16, facula.float32, output_dtype=facula.float32)

    def wrap(module, mesh):
        return fully_shard(module, mesh=mesh, mp_policy=policy)

    check(trained("InterleavedZeroBubble", wrap, 1), *expected(1), 5e-2)


def test_gradients_travel_once_for_a_batch():
    calls = []

    def wrap(module, mesh):
        fully_shard(module, mesh=mesh)
        module.set_all_reduce_hook(lambda reduced: calls.append(reduced.shape))
        return module

    trained("1F1B", wrap, 1)
    assert len(calls) == 4  # ranks


def tensor_parallel(rank, models, x, target, is_sharded):
    shape = (2, 2, 2) if is_sharded else (2, 1, 2)
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("pipeline", "data", "tensor"))
    place, rows = mesh["pipeline"].get_local_rank(), mesh["data"].get_local_rank()
    plan = {"0.0": ColwiseParallel(), "0.2": RowwiseParallel()}
    module = parallelize_module(copy.deepcopy(models[place]), mesh["tensor"], plan)
    if is_sharded:
        fully_shard(module, mesh=mesh["data"])
    group = mesh["pipeline"].get_group()
    stage = PipelineStage(module, place, 2, facula.device("cpu"), group=group)
    pipeline = schedules.ScheduleGPipe(stage, 2, loss_fn=F.mse_loss)
    mine = slice(rows * 4, rows * 4 + 4) if is_sharded else slice(None)
    if place == 0:
        pipeline.step(x[mine])
    else:
        pipeline.step(target=target[mine])
    return [whole(p.grad) for p in module.parameters()], module[-1].num_batches_tracked.item()


@pytest.mark.parametrize("is_sharded", [False, True])
def test_stages_may_be_tensor_parallel(is_sharded):
    facula.manual_seed(3)
    models = [
        nn.Sequential(
            nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 6)),
            nn.BatchNorm1d(6, affine=False, momentum=0.0).train(),
        )
        for _ in range(2)
    ]
    x, target = facula.randn(8, 6), facula.randn(8, 6)
    arguments = (models, x, target, is_sharded)
    results = threads.run(tensor_parallel, 8 if is_sharded else 4, arguments)
    batches = x.chunk(4 if is_sharded else 2), target.chunk(4 if is_sharded else 2)
    plain = copy.deepcopy(nn.Sequential(*models))
    losses = [F.mse_loss(plain(a), b) for a, b in zip(*batches, strict=True)]
    facula.stack(losses).mean().backward()
    grads = [p.grad for p in plain.parameters()]
    half = len(results) // 2
    for (first, count), (second, _) in zip(results[:half], results[half:], strict=True):
        facula.testing.assert_close([*first, *second], grads, rtol=1e-4, atol=1e-4)
        assert count == 2  # finding shapes has left the buffers alone
