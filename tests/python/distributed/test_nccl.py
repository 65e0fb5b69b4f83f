"""The engine over NCCL, on toy devices: each call against the same call on the CPU.

The library is a stand-in (tests/cpp/plugins/toy_nccl), whose work goes through toy streams late.
"""

import pytest
import toy_nccl
from facula._C import _distributed


@pytest.fixture(scope="module")
def toys(tmp_path_factory):
    return toy_nccl.libraries(tmp_path_factory)


SAME = """
def same(a, b):
    assert b.device.type == "toy" and a.dtype == b.dtype, (a, b)
    b = b.cpu()
    a, b = (t.view(facula.uint8) if "float8" in str(t.dtype) else t for t in (a, b))
    assert facula.equal(a, b), (a, b)

def numbers(n, dtype, rank=rank):
    return ((facula.arange(n) * 7 + rank * 3) % 5 + 1).to(dtype)

def both(call, *tensors):
    # Runs a call on tensors of the CPU and on copies of them on the toy; compares all.
    there = [t.to(dev) for t in tensors]
    call(*tensors)
    call(*there)
    for a, b in zip(tensors, there):
        same(a, b)
make()
"""

REDUCTIONS = """
op = dist.ReduceOp
floats = [facula.float32, facula.float64, facula.float16, facula.bfloat16]
ints = [facula.int8, facula.uint8, facula.int32, facula.int64, facula.uint32, facula.uint64]
for dtype in floats + ints + [facula.bool, facula.float8_e4m3fn, facula.float8_e5m2,
                              facula.complex64]:
    for how in (op.SUM, op.AVG, op.PRODUCT, op.MIN, op.MAX):
        if dtype is facula.bool and how is op.AVG:
            continue
        if dtype.is_complex and how not in (op.SUM, op.AVG):
            continue
        both(lambda x: dist.all_reduce(x, how), numbers(33, dtype))
for dtype in floats:
    half = dist.distributed_c10d._make_nccl_premul_sum(0.5)
    both(lambda x: dist.all_reduce(x, half), numbers(33, dtype))
    both(lambda x, y: dist.reduce_scatter_tensor(x, y, half), facula.zeros(5, dtype=dtype),
         numbers(5 * size, dtype))
for x in (numbers(70_000, facula.float64), numbers(0, facula.float32), numbers(1, facula.int32)[0]):
    both(dist.all_reduce, x)
"""

MOVES = """
def parts(x):
    return [facula.zeros_like(x) for _ in range(size)]

def gathered(x):
    got = parts(x)
    dist.all_gather(got, x)
    x.copy_(facula.stack(got).sum(0).to(x.dtype))

def gathered_whole(x):
    whole = facula.zeros(size, *x.shape, dtype=x.dtype, device=x.device)
    dist.all_gather_into_tensor(whole, x)
    x.copy_(whole.to(facula.float32).sum(0).to(x.dtype))

def gathered_at_one(x):
    got = parts(x) if rank == 1 else None
    dist.gather(x, got, dst=1)
    if rank == 1:
        x.copy_(got[0])

def scattered(x):
    dist.scatter(x, [x + r for r in range(size)] if rank == 1 else None, src=1)

def reduced_parts(x):
    dist.reduce_scatter(x, [x * (r + 1) for r in range(size)])

def exchanged(x):
    got = parts(x)
    dist.all_to_all(got, [x + r for r in range(size)])
    x.copy_(got[0])

def exchanged_unequal(x):
    # Rank r sends i + r elements to rank i.
    sent = [i + rank for i in range(size)]
    received = [rank + r for r in range(size)]
    y = facula.zeros(sum(received), dtype=x.dtype, device=x.device)
    dist.all_to_all_single(y, x[:sum(sent)], received, sent)
    x[:sum(received)].copy_(y)

def sent_on(x):
    # A ring, in which each rank sends and receives at once.
    y = facula.zeros_like(x)
    works = dist.batch_isend_irecv([
        dist.P2POp(dist.isend, x, (rank + 1) % size),
        dist.P2POp(dist.irecv, y, (rank - 1) % size),
    ])
    [w.wait() for w in works]
    x.copy_(y)

def passed(x):
    if rank == 0:
        dist.send(x, 1)
    elif rank == 1:
        assert dist.recv(x, 0) == 0

calls = [gathered, gathered_whole, gathered_at_one, scattered, reduced_parts, exchanged,
         exchanged_unequal, sent_on, passed, lambda x: dist.broadcast(x, 1),
         lambda x: dist.reduce(x, 1)]
for call in calls:
    for dtype in (facula.float32, facula.int64, facula.bfloat16):
        both(call, numbers(40, dtype))
    both(call, numbers(20_000, facula.float32))
for dtype in (facula.bool, facula.int16, facula.complex128, facula.float8_e5m2):
    both(lambda x: dist.broadcast(x, 1), numbers(40, dtype))
for _ in range(3):
    dist.barrier()
"""

OBJECTS = """
make("toy:nccl")
got = [None] * size
dist.all_gather_object(got, {"rank": rank})
assert got == [{"rank": r} for r in range(size)], got
got = [rank, "x"] if rank == 1 else [None, None]
dist.broadcast_object_list(got, src=1)
assert got == [1, "x"]
got = [None]
dist.scatter_object_list(got, [f"to {r}" for r in range(size)] if rank == 0 else None)
assert got == [f"to {rank}"]
if rank == 0:
    dist.send_object_list(["hello"], 1)
elif rank == 1:
    got = [None]
    assert dist.recv_object_list(got, 0) == 0 and got == ["hello"]
"""

GROUPS = """
make("toy:nccl")
x = facula.ones(3, device=dev)
evens = dist.new_group(range(0, size, 2))
if rank % 2 == 0:
    dist.all_reduce(x, group=evens)
    assert x.cpu().tolist() == [(size + 1) // 2] * 3
both, pair = dist.new_group(), dist.new_group([0, 1])
y = facula.full((2,), float(rank), device=dev)
first = dist.all_reduce(y, group=both, async_op=True)
second = dist.all_reduce(x, op=dist.ReduceOp.MAX, async_op=True)
first.wait(), second.wait()
assert y.cpu().tolist() == [sum(range(size))] * 2
assert dist.get_backend() == "toy:nccl" and dist.get_backend_config() == "toy:nccl"
dist.destroy_process_group()
assert nccl.toy_nccl_aborts() == 0
make("toy:nccl")
dist.all_reduce(y)
dist.destroy_process_group()
"""

PROGRAMS = {"reductions": SAME + REDUCTIONS, "moves": SAME + MOVES, "objects": OBJECTS}


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("name", PROGRAMS)
def test_same_as_on_the_cpu(toys, name, size, tmp_path):
    toy_nccl.run(PROGRAMS[name], size, tmp_path, toys)


@pytest.mark.parametrize("size", [2, 3])
def test_groups_of_some_ranks_and_made_again(toys, size, tmp_path):
    toy_nccl.run(GROUPS, size, tmp_path, toys)


@pytest.mark.skipif(bool(_distributed.why_not("gloo")), reason="this build has no Gloo")
def test_hosts_that_tell_each_other_over_gloo(toys, tmp_path):
    toy_nccl.run(GROUPS, 2, tmp_path, {**toys, "FACULA_DISTRIBUTED_ENGINE": "gloo"})


def test_many_calls_of_several_groups_and_streams(toys, tmp_path):
    program = """
    make("toy:nccl")
    groups = [dist.group.WORLD, dist.new_group(), dist.new_group([0, 2]), dist.new_group([1, 2])]
    streams = [facula.Stream(dev) for _ in range(2)]
    works, expected = [], []
    for i in range(120):
        group = groups[i % len(groups)]
        if group == dist.GroupMember.NON_GROUP_MEMBER:
            continue
        ranks = dist.get_process_group_ranks(group)
        with streams[i % 2]:
            x = facula.full((i + 1,), float(rank + i), device=dev)
            work = dist.all_reduce(x, group=group, async_op=bool(i % 3))
            if work is not None and i % 2:
                work.wait()
                x += 1
        works.append((work, x, sum(r + i for r in ranks) + (work is not None and i % 2)))
    for work, x, total in works:
        if work is not None:
            work.wait()
    for stream in streams:
        stream.synchronize()
    for work, x, total in works:
        assert x.cpu().tolist() == [total] * len(x), (x, total)
    """
    toy_nccl.run(program, 3, tmp_path, toys)


def test_a_forked_child_leaves_the_group_alone(toys, tmp_path):
    program = """
    import gc
    make("toy:nccl")
    x = facula.ones(3, device=dev)
    dist.all_reduce(x)
    child = os.fork()
    if child == 0:
        try:
            dist.all_reduce(x)
        except RuntimeError as error:
            assert "fork" in str(error), error
        dist.distributed_c10d._world.pg_map.clear()
        dist.group.WORLD = None
        gc.collect()
        os._exit(7)
    assert os.waitpid(child, 0)[1] >> 8 == 7
    dist.all_reduce(x)
    assert x.cpu().tolist() == [4.0] * 3
    """
    toy_nccl.run(program, 2, tmp_path, toys)


def test_the_host_does_not_wait_for_the_device(toys, tmp_path):
    program = """
    make("toy:nccl")
    x = facula.full((4,), float(rank), device=dev)
    dist.all_reduce(x.clone())
    toy.toy_hold(rank % 2, None)
    x += 1
    dist.all_reduce(x)
    y = x * 2
    work = dist.all_reduce(y, async_op=True)
    assert not work.is_completed()
    work.wait()
    z = y + 1
    assert not work.is_completed()
    toy.toy_let_go()
    assert z.cpu().tolist() == [2 * size * sum(r + 1 for r in range(size)) + 1] * 4
    assert work.is_completed() and work.is_success() and work.exception() is None
    assert work.get_future().wait()[0] is y
    work = dist.barrier(async_op=True)
    work.wait()
    assert work.is_completed()
    work = dist.all_reduce(y, async_op=True)
    work.wait(timedelta(seconds=5))
    assert work.is_completed()
    """
    toy_nccl.run(program, 2, tmp_path, toys)


def test_calls_of_a_scope_are_one(toys, tmp_path):
    program = """
    make("toy:nccl")
    xs = [facula.full((n,), float(rank + 1), device=dev) for n in (2, 3, 4)]
    dist.all_reduce(facula.ones(1, device=dev))
    before = nccl.toy_nccl_launches(), nccl.toy_nccl_calls()
    with dist._coalescing_manager(device=dev):
        for x in xs:
            dist.all_reduce(x)
    assert all(x.cpu().tolist() == [3.0] * len(x) for x in xs), xs
    with dist._coalescing_manager(device=dev, async_ops=True) as manager:
        dist.all_reduce(xs[0])
        dist.broadcast(xs[1], 0)
    manager.wait()
    pg = dist.group.WORLD
    pg.allreduce_coalesced(xs).wait()
    wholes = [facula.zeros(2 * len(x), device=dev) for x in xs]
    pg.allgather_into_tensor_coalesced(wholes, xs).wait()
    after = nccl.toy_nccl_launches(), nccl.toy_nccl_calls()
    assert [b - a for a, b in zip(before, after)] == [4, 11], (before, after)
    assert wholes[0].cpu().tolist() == [12.0] * 4
    # What an exception ends is not done.
    try:
        with dist._coalescing_manager(device=dev):
            dist.all_reduce(xs[0])
            raise KeyError("never mind")
    except KeyError:
        pass
    try:
        with dist._coalescing_manager(device=dev):
            dist.all_reduce(facula.ones(4, 4, device=dev).t()[1:])
    except RuntimeError as error:
        assert "contiguous" in str(error)
    assert nccl.toy_nccl_calls() == after[1]
    dist.all_reduce(xs[0])
    """
    toy_nccl.run(program, 2, tmp_path, toys)


def test_strided_and_sparse_tensors(toys, tmp_path):
    program = """
    make("toy:nccl")
    x = facula.arange(6.0).reshape(2, 3).to(dev).t()
    dist.all_reduce(x)
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    assert x.cpu().tolist() == [[0, 12], [4, 16], [8, 20]], x.cpu()
    """
    toy_nccl.run(program, 2, tmp_path, toys)


def test_options_reach_the_communicator(toys, tmp_path):
    program = """
    options = dist.ProcessGroupNCCL.Options(is_high_priority_stream=True)
    options.config.min_ctas = 3
    make("toy:nccl", pg_options=options, device_id=dev)
    assert nccl.toy_nccl_min_ctas() == 3 and nccl.toy_nccl_blocking() == 0
    pg = dist.group.WORLD
    assert pg.bound_device_id == dev and pg.options is options and pg.name() == "nccl"
    assert pg.get_runtime_nccl_version() == (2, 32, 3)
    assert dist.get_backend_config() == "toy:nccl"
    part = dist.split_group(split_ranks=[[1, 0]])
    assert part.rank() == 1 - rank and pg.comm_split_count() == 1
    x = facula.full((1,), float(rank), device=dev)
    dist.broadcast(x, group=part, group_src=0)
    assert x.item() == 1
    alone = dist.ProcessGroupNCCL(store, rank, size, None, dev)
    alone.eager_connect_single_device(dev)
    alone.allreduce([x]).wait()
    assert x.item() == 2
    dist.barrier()
    """
    toy_nccl.run(program, 2, tmp_path, toys)


SHARDED = """
make("cpu:gloo,toy:nccl")
from facula.distributed import _functional_collectives as functional
from facula.distributed.fsdp import fully_shard
from facula.distributed.tensor import Shard, distribute_tensor

x = facula.full((2, 3), float(rank + 1), device=dev)
total = functional.all_reduce(x, "sum", dist.group.WORLD)
assert (total + 1).cpu().tolist() == [[4.0] * 3] * 2
whole = functional.all_gather_tensor(x, 0, dist.group.WORLD)
assert whole.cpu()[:, 0].tolist() == [1, 1, 2, 2]
mesh = dist.init_device_mesh("toy", (size,))
spread = distribute_tensor(facula.arange(8.0).to(dev), mesh, [Shard(0)])
assert (spread * 2).full_tensor().cpu().tolist() == [2.0 * i for i in range(8)]

facula.manual_seed(0)
linears = facula.nn.Linear(4, 8), facula.nn.Linear(8, 2)
alone = facula.nn.Sequential(linears[0], facula.nn.Tanh(), linears[1])
model = facula.nn.Sequential(facula.nn.Linear(4, 8), facula.nn.Tanh(), facula.nn.Linear(8, 2))
model.load_state_dict(alone.state_dict())
model.to(dev)
fully_shard(model[0], mesh=mesh), fully_shard(model, mesh=mesh)
data = facula.arange(32.0).reshape(8, 4) / 32
for net, part in ((alone, data), (model, data.chunk(size)[rank].to(dev))):
    optimizer = facula.optim.SGD(net.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (net(part) ** 2).mean().backward()
        optimizer.step()
for a, b in zip(alone.parameters(), model.parameters()):
    assert facula.allclose(a, b.full_tensor().cpu(), atol=1e-5), (a, b)
"""


def test_spread_tensors_and_sharded_modules(toys, tmp_path):
    toy_nccl.run(SHARDED, 2, tmp_path, toys)


@pytest.mark.parametrize("backend", ["nccl", "cpu:gloo,cuda:nccl", None])
def test_names_of_pytorch_for_devices_that_are_called_cuda(toys, backend, tmp_path):
    program = f"""
    make({backend!r})
    x = facula.ones(3, device=dev)
    dist.all_reduce(x)
    dist.barrier()
    assert x.cpu().tolist() == [2.0] * 3
    assert dist.get_backend_config() in ("cuda:nccl", "cpu:gloo,cuda:nccl")
    assert dist.is_backend_available("nccl") and dist.is_nccl_available()
    on_host = facula.ones(3)
    try:
        dist.all_reduce(on_host)
        assert on_host.tolist() == [2.0] * 3
    except RuntimeError as error:
        assert "No backend type associated with device type cpu" in str(error)
        assert dist.get_backend() == "nccl"
    """
    toy_nccl.run(program, 2, tmp_path, {**toys, "TOY_NAME": "cuda"})


def test_a_model_is_trained_on_several_devices(toys, tmp_path):
    program = """
    make("cpu:gloo,toy:nccl")
    facula.manual_seed(0)
    model = facula.nn.Sequential(facula.nn.Linear(4, 8), facula.nn.Tanh(), facula.nn.Linear(8, 1))
    alone = [p.detach().clone().requires_grad_() for p in model.parameters()]
    ddp = facula.nn.parallel.DistributedDataParallel(model.to(dev))
    whole = facula.arange(32.0).reshape(8, 4) / 32
    part = whole.chunk(size)[rank].to(dev)
    (ddp(part) ** 2).mean().backward()
    got = [p.grad.cpu() for p in model.parameters()]
    out = facula.nn.functional.linear(whole, alone[0], alone[1]).tanh()
    (facula.nn.functional.linear(out, alone[2], alone[3]) ** 2).mean().backward()
    for a, b in zip(alone, got):
        assert facula.allclose(a.grad, b, atol=1e-6), (a.grad, b)
    """
    toy_nccl.run(program, 2, tmp_path, toys)
