"""The engine over Gloo's connections, which ranks on several machines use; here on loopback."""

import pytest
from facula._C import _distributed
from ranks import outputs

pytestmark = pytest.mark.skipif(
    bool(_distributed.why_not("gloo")), reason="this build has no engine over Gloo"
)

PROGRAM = """
x = facula.tensor([rank + 1.0])
dist.all_reduce(x)
assert x == sum(range(1, size + 1))
large = facula.arange(50_003.0) * (rank + 1)
dist.all_reduce(large)
assert facula.equal(large, facula.arange(50_003.0) * sum(range(1, size + 1)))
objects = [None] * size
dist.all_gather_object(objects, {"rank": rank})
assert objects == [{"rank": r} for r in range(size)]
y = facula.full((20_000,), float(rank))
dist.broadcast(y, 1)
assert (y == 1).all()
z = facula.full((3,), float(rank))
dist.reduce(z, 1)
assert (z == (sum(range(size)) if rank == 1 else rank)).all()
out = facula.zeros(size)
dist.all_to_all_single(out, facula.arange(float(size)) + 10 * rank)
assert facula.equal(out, facula.arange(size) * 10.0 + rank)
parts = [facula.zeros(2) for _ in range(size)] if rank == 0 else None
dist.gather(facula.full((2,), float(rank)), parts)
assert rank or [p[0].item() for p in parts] == list(range(size))
given = facula.zeros(2)
dist.scatter(given, [facula.full((2,), float(r)) for r in range(size)] if rank == 1 else None, 1)
assert (given == rank).all()
share = facula.zeros(3)
dist.reduce_scatter_tensor(share, facula.ones(3 * size))
assert (share == size).all()
empty = facula.zeros(0)
dist.all_reduce(empty)
if rank == 0:
    dist.send(large, 1)
    works = [dist.isend(facula.full((2,), float(tag)), 1, tag=tag) for tag in (4, 5)]
    for work in works:
        work.wait()
if rank == 1:
    got = facula.zeros(50_003)
    assert dist.recv(got) == 0 and facula.equal(got, large)
    for tag in (5, 4):
        got = facula.zeros(2)
        dist.recv(got, 0, tag=tag)
        assert (got == tag).all()
dist.monitored_barrier()
work = dist.all_reduce(x, async_op=True)
work.wait()
group = dist.new_group([0, 1])
if rank < 2:
    dist.barrier(group)
dist.destroy_process_group()
print("done")
"""


@pytest.mark.parametrize("size", [2, 3])
def test_collectives_and_messages(size, tmp_path):
    found = outputs(PROGRAM, size, tmp_path, FACULA_DISTRIBUTED_ENGINE="gloo")
    assert found == ["done\n"] * size


# Up to a size, which depends on the number of ranks, data goes with the packets of a call.
SIZES = """
for n in (1, 447, 448, 449, 13_107, 13_108, 16_384, 16_385, 17_000):
    mine = facula.arange(float(n)) * (rank + 1)
    of = [facula.arange(float(n)) * (r + 1) for r in range(size)]
    total = facula.arange(float(n)) * sum(range(1, size + 1))
    x = mine.clone()
    dist.all_reduce(x)
    assert facula.equal(x, total)
    x = mine.clone()
    dist.broadcast(x, size - 1)
    assert facula.equal(x, of[-1])
    x = mine.clone()
    dist.reduce(x, 1)
    assert facula.equal(x, total if rank == 1 else mine)
    parts = [facula.zeros(n) for _ in range(size)]
    dist.all_gather(parts, mine)
    assert all(map(facula.equal, parts, of))
    parts = [facula.zeros(n) for _ in range(size)] if rank == 0 else None
    dist.gather(mine, parts)
    assert rank or all(map(facula.equal, parts, of))
    x = facula.zeros(n)
    dist.scatter(x, of if rank == 1 else None, 1)
    assert facula.equal(x, mine)
    dist.reduce_scatter(x, [part * (rank + 1) for part in of])
    assert facula.equal(x, mine * sum(range(1, size + 1)))
dist.destroy_process_group()
print("done")
"""


@pytest.mark.parametrize("size", [2, 5])
def test_sizes_about_those_of_packets(size, tmp_path):
    found = outputs(SIZES, size, tmp_path, FACULA_DISTRIBUTED_ENGINE="gloo")
    assert found == ["done\n"] * size
