"""Values of collectives, with ranks that are threads, against what one process computes."""

import facula
import facula.distributed as dist
import pytest
from facula.distributed import threads

N = 3
DTYPES = [
    facula.bool,
    facula.uint8,
    facula.int8,
    facula.int16,
    facula.int32,
    facula.int64,
    facula.float16,
    facula.bfloat16,
    facula.float32,
    facula.float64,
    facula.complex64,
    facula.complex128,
]
# Nothing; less than a piece; more than one piece of the shared memory.
SIZES = [0, 1, 7, 5000, 200_003]


def value(rank, shape=(2, 3), dtype=facula.float32):
    n = 1
    for s in shape:
        n *= s
    return ((facula.arange(n) % 5 + rank) % 7).view(shape).to(dtype)


def values(shape=(2, 3), dtype=facula.float32):
    return [value(r, shape, dtype) for r in range(N)]


def same(results, expected):
    for got, wanted in zip(results, expected, strict=False):
        assert got.dtype == wanted.dtype and got.shape == wanted.shape
        assert facula.equal(got, wanted), (got, wanted)


OPERATIONS = {
    "SUM": lambda ts: sum(ts[1:], ts[0]),
    "PRODUCT": lambda ts: ts[0] * ts[1] * ts[2],
    "MIN": lambda ts: facula.stack(ts).amin(0),
    "MAX": lambda ts: facula.stack(ts).amax(0),
    "BAND": lambda ts: ts[0] & ts[1] & ts[2],
    "BOR": lambda ts: ts[0] | ts[1] | ts[2],
    "BXOR": lambda ts: ts[0] ^ ts[1] ^ ts[2],
}


@pytest.mark.parametrize("op", OPERATIONS)
def test_all_reduce_reduces_each_dtype(op):
    bits = op in ("BAND", "BOR", "BXOR")

    def allowed(dtype):
        if dtype.is_complex:
            return op == "SUM"
        return not (bits and dtype.is_floating_point)

    dtypes = [d for d in DTYPES if allowed(d)]

    def work(rank):
        results = []
        for dtype in dtypes:
            x = value(rank, dtype=dtype)
            dist.all_reduce(x, getattr(dist.ReduceOp, op))
            results.append(x)
        return results

    for results in threads.run(work, N):
        same(results, [OPERATIONS[op](values(dtype=d)).to(d) for d in dtypes])


def test_averages_and_scaled_sums():
    def work(rank):
        a, b = value(rank), value(rank)
        dist.all_reduce(a, dist.ReduceOp.AVG)
        dist.all_reduce(b, dist.distributed_c10d._make_nccl_premul_sum(0.5))
        return a, b

    for a, b in threads.run(work, N):
        assert facula.allclose(a, sum(values()) / N) and facula.allclose(b, sum(values()) / 2)


@pytest.mark.parametrize("size", SIZES)
def test_each_collective_at_sizes_below_and_above_a_piece(size):
    every = [value(r, (size,)) for r in range(N)]
    total = sum(every)

    def work(rank):
        mine = every[rank].clone()
        reduced, first, received = mine.clone(), mine.clone(), mine.clone()
        dist.all_reduce(reduced)
        dist.reduce(first, 1)
        dist.broadcast(received, 2)
        parts = [facula.empty(size) for _ in range(N)]
        dist.all_gather(parts, mine)
        whole = facula.empty(N * size)
        dist.all_gather_into_tensor(whole, mine)
        collected = [facula.empty(size) for _ in range(N)] if rank == 1 else None
        dist.gather(mine, collected, dst=1)
        given = facula.empty(size)
        dist.scatter(given, [x + 1 for x in every] if rank == 0 else None, src=0)
        share = facula.empty(size)
        dist.reduce_scatter(share, [mine + i for i in range(N)])
        share_of_one = facula.empty(size)
        dist.reduce_scatter_tensor(share_of_one, facula.cat([mine + i for i in range(N)]))
        swapped = [facula.empty(size) for _ in range(N)]
        dist.all_to_all(swapped, [mine + i for i in range(N)])
        swapped_whole = facula.empty(N * size)
        dist.all_to_all_single(swapped_whole, facula.cat([mine + i for i in range(N)]))
        dist.barrier()
        return (
            reduced,
            first,
            received,
            facula.cat(parts),
            whole,
            collected,
            given,
            share,
            share_of_one,
            facula.cat(swapped),
            swapped_whole,
        )

    for rank, results in enumerate(threads.run(work, N)):
        exchanged = facula.cat([x + rank for x in every])
        expected = [
            total,
            total if rank == 1 else every[rank],
            every[2],
            facula.cat(every),
            facula.cat(every),
            None,
            every[rank] + 1,
            total + N * rank,
            total + N * rank,
            exchanged,
            exchanged,
        ]
        same([r for i, r in enumerate(results) if i != 5], expected[:5] + expected[6:])
        if rank == 1:
            same(results[5], every)


def test_tensors_of_any_strides_are_read_and_filled():
    def work(rank):
        x = value(rank, (4, 6)).t()[::2]
        dist.all_reduce(x)
        y = value(rank, (4, 6)).t()
        dist.broadcast(y, 1)
        parts = [facula.zeros(6, 4).t() for _ in range(N)]
        dist.all_gather(parts, value(rank, (6, 4)).t())
        z = facula.zeros(4, 6).t()
        work = dist.all_reduce(z.fill_(1), async_op=True)
        work.wait()
        c = value(rank, dtype=facula.complex64).mul(1j).conj()
        dist.all_reduce(c)
        return x, y, parts, z, c

    for x, y, parts, z, c in threads.run(work, N):
        assert facula.equal(x, sum(values((4, 6))).t()[::2])
        assert facula.equal(y, value(1, (4, 6)).t()) and facula.equal(z, facula.full((6, 4), 3.0))
        assert all(facula.equal(p, value(r, (6, 4)).t()) for r, p in enumerate(parts))
        assert facula.equal(c.resolve_conj(), sum(values(dtype=facula.complex64)) * -1j)


def test_all_to_all_takes_parts_of_different_sizes():
    def work(rank):
        sizes = [r + 1 for r in range(N)]
        x = value(rank, (sum(sizes), 2))
        out = facula.empty(N * (rank + 1), 2)
        dist.all_to_all_single(out, x, [rank + 1] * N, sizes)
        return out

    for rank, out in enumerate(threads.run(work, N)):
        begin = rank * (rank + 1) // 2
        parts = [value(r, (6, 2))[begin : begin + rank + 1] for r in range(N)]
        assert facula.equal(out, facula.cat(parts))


def test_results_are_the_same_bits_at_all_ranks_and_each_time():
    facula.manual_seed(0)
    every = [facula.randn(30_000) * 10.0 ** (r * 3) for r in range(4)]

    def work(rank):
        results = []
        for _ in range(3):
            x = every[rank].clone()
            dist.all_reduce(x)
            results.append(x)
        return results

    results = [x for part in threads.run(work, 4) for x in part]
    expected = ((every[0] + every[1]) + every[2]) + every[3]
    assert all(facula.equal(x, expected) for x in results)


def test_works_end_in_order_and_have_futures():
    def work(rank):
        x = facula.ones(3)
        works = [dist.all_reduce(x, async_op=True) for _ in range(4)]
        future = works[-1].get_future()
        doubled = future.then(lambda f: f.value()[0] * 2).wait()
        assert all(w.wait() and w.is_completed() and w.is_success() for w in works)
        assert works[0].exception() is None and works[0].result()[0] is x
        dist.all_reduce(x)
        return doubled, x

    for doubled, x in threads.run(work, 2):
        assert facula.equal(doubled, facula.full((3,), 32.0)) and x[0] == 32


def test_groups_of_some_ranks():
    def work(rank):
        pair = dist.new_group([0, 2])
        mine, every = dist.new_subgroups(2)
        x, y = facula.ones(1), facula.full((1,), float(rank))
        if rank in (0, 2):
            dist.all_reduce(x, group=pair)
            assert dist.get_process_group_ranks(pair) == [0, 2]
            assert dist.get_group_rank(pair, 2) == 1 and dist.get_global_rank(pair, 1) == 2
            dist.broadcast(y, 2, group=pair)
        else:
            assert pair == dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(pair) == -1
            with pytest.warns(UserWarning, match="not in this group"):
                dist.all_reduce(x, group=pair)
        dist.all_reduce(y, group=mine)
        assert len(every) == 2 and dist.get_world_size(mine) == 2
        return x.item(), y.item()

    assert threads.run(work, 4) == [(2, 3), (1, 3), (2, 5), (1, 5)]


def test_groups_that_others_are_cut_into():
    def work(rank):
        parts = dist.split_group(split_ranks=[[0, 2], [3]], group_desc="parts")
        x = facula.full((1,), float(rank))
        if rank != 1:
            dist.all_reduce(x, group=parts)
            assert parts.group_desc == "parts"
        else:
            assert parts == dist.GroupMember.NON_GROUP_MEMBER
        if rank in (0, 2):
            inner = dist.split_group(parts, [[1], [0]])
            assert inner.size() == 1 and dist.get_process_group_ranks(inner) == [rank]
        dist.all_reduce(x)
        return x.item()

    assert threads.run(work, 4) == [8.0] * 4


def test_groups_that_only_their_members_make_do_not_change_the_names_of_others():
    def work(rank):
        if rank < 2:
            dist.new_group([0, 1], use_local_synchronization=True)
        x = facula.ones(1)
        dist.all_reduce(x, group=dist.new_group())
        return x.item()

    assert threads.run(work, 3) == [3.0] * 3


def test_sparse_tensors_are_summed():
    def work(rank):
        x = facula.eye(3).mul(rank + 1).to_sparse()
        dist.all_reduce(x)
        return x.to_dense()

    for x in threads.run(work, 2):
        assert facula.equal(x, facula.eye(3) * 3)


def test_coalesced_calls_end_with_their_scope():
    def work(rank):
        xs = [facula.full((2,), float(rank + i)) for i in range(3)]
        with dist.distributed_c10d._coalescing_manager():
            for x in xs:
                dist.all_reduce(x)
        with pytest.warns(FutureWarning):
            dist.all_reduce_coalesced(xs)
        return [x[0].item() for x in xs]

    assert threads.run(work, 2) == [[2, 6, 10]] * 2


def test_many_ranks():
    def work(rank):
        x = facula.full((40_000,), float(rank))
        dist.all_reduce(x)
        parts = facula.empty(64)
        dist.all_gather_into_tensor(parts, facula.tensor([float(rank)]))
        return x[0].item(), parts

    for total, parts in threads.run(work, 64):
        assert total == 63 * 32 and facula.equal(parts, facula.arange(64.0))


def test_a_fake_group_needs_no_other_rank():
    from facula.distributed.distributed_c10d import _world

    dist.init_process_group("fake", store=object(), rank=1, world_size=1000)
    try:
        x = facula.ones(2)
        dist.all_reduce(x)
        parts = facula.zeros(2000)
        dist.all_gather_into_tensor(parts, x)
        dist.barrier()
        assert facula.equal(parts, facula.ones(2000)) and dist.get_world_size() == 1000
    finally:
        dist.destroy_process_group()
    assert _world.default_pg is None and not dist.is_initialized()


def test_names_beside_the_usual_ones():
    def work(rank):
        x = value(rank, (3, 2))
        whole = facula.zeros(N * 3, 2).t().contiguous().t() if rank == 1 else None
        dist.gather_single(x, whole, dst=1)
        every = facula.zeros(N * 3, 2)
        dist.all_gather_single(every, x)
        part = facula.zeros(1, 2)
        dist.reduce_scatter_single(part, x)
        turned = dist.new_group([2, 0], sort_ranks=False)
        place = dist.get_rank(turned) if rank != 1 else None
        assert dist.get_backend_impl() is dist.group.WORLD
        return whole, every, part, place

    for rank, (whole, every, part, place) in enumerate(threads.run(work, N)):
        assert rank != 1 or facula.equal(whole, facula.cat(values((3, 2))))
        assert facula.equal(every, facula.cat(values((3, 2))))
        assert facula.equal(part, sum(values((3, 2)))[rank : rank + 1])
        assert place == {0: 1, 1: None, 2: 0}[rank]


def test_groups_collect_several_tensors_and_know_their_store():
    def work(rank):
        pg = dist.group.WORLD
        outputs = [[facula.zeros(2), facula.zeros(3, 2).t()] for _ in range(N)]
        pg.allgather_coalesced(outputs, [value(rank, (2,)), value(rank, (2, 3))]).wait()
        pg.get_group_store().set(f"key {rank}", "there")
        assert pg.get_backend(facula.device("cpu")) is pg
        assert not pg.supports_window and not pg.supports_tensor_alloc(facula.device("cpu"))
        return outputs

    for outputs in threads.run(work, N):
        same([o[0] for o in outputs], values((2,)))
        same([o[1] for o in outputs], values((2, 3)))
    with pytest.raises(RuntimeError, match=r"get_group_store\(\): expected a group that has a sto"):
        dist.ProcessGroup(0, 1).get_group_store()
