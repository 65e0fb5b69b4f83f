"""Gradients with the same bits on any number of ranks."""

import facula
import facula.distributed as dist
import pytest
from facula import nn
from facula.distributed import threads
from facula.distributed.strict import strict_backward

SAMPLES = 32


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(11, 6), nn.Linear(6, 4)

    def forward(self, x):
        return self.out(self.table(x).mean(1))


def images(seed):
    facula.manual_seed(seed)
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3 * 16, 4))
    return net, facula.randn(SAMPLES, 1, 6, 6)


def rows(seed):
    facula.manual_seed(seed)
    net = nn.Sequential(nn.Linear(7, 19), nn.GELU(), nn.LayerNorm(19), nn.Linear(19, 4))
    return net, facula.randn(SAMPLES, 7)


def words(seed):
    facula.manual_seed(seed)
    return Words(), facula.randint(0, 11, (SAMPLES, 5))


def loss_of(model, x, y):
    return nn.functional.cross_entropy(model(x), y)


@pytest.mark.parametrize("program", [images, rows, words])
def test_gradients_have_the_same_bits_on_1_2_and_4_ranks(program):
    net, x = program(0)
    y = facula.arange(SAMPLES) % 4

    def part(rank, ranks):
        model, _ = program(0)
        mine = slice(rank * SAMPLES // ranks, (rank + 1) * SAMPLES // ranks)
        loss = strict_backward(model, loss_of, (x[mine], y[mine]))
        return [loss, *(p.grad for p in model.parameters())]

    alone = part(0, 1)
    for ranks in (1, 2, 4):
        for found in threads.run(part, ranks, (ranks,)):
            assert all(facula.equal(a, b) for a, b in zip(alone, found, strict=True))
    loss_of(net, x, y).backward()
    for a, p in zip(alone[1:], net.parameters(), strict=True):
        facula.testing.assert_close(a, p.grad)


def test_plain_sums_hang_on_the_number_of_ranks():
    """What strict_backward() is for: without it some bits differ."""
    net, x = rows(1)
    y = facula.arange(SAMPLES) % 4

    def part(rank, ranks):
        model, _ = rows(1)
        ddp = nn.parallel.DistributedDataParallel(model)
        mine = slice(rank * SAMPLES // ranks, (rank + 1) * SAMPLES // ranks)
        loss_of(ddp, x[mine], y[mine]).backward()
        return [p.grad for p in model.parameters()]

    one, four = (threads.run(part, ranks, (ranks,))[0] for ranks in (1, 4))
    assert not all(facula.equal(a, b) for a, b in zip(one, four, strict=True))


def test_parameters_that_are_not_used_get_zeros():
    net = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
    strict_backward(net, lambda m, x: m[0](x).mean(), facula.ones(4, 2), chunks=2)
    assert net[1].weight.grad.abs().sum() == 0


WRONG = [
    (dict(chunks=3), "powers of two"),
    (dict(chunks=0), "powers of two"),
    (dict(chunks=16), "divide"),
]


@pytest.mark.parametrize("options, text", WRONG)
def test_batches_that_cannot_be_cut(options, text):
    with pytest.raises(ValueError, match=text):
        strict_backward(nn.Linear(2, 1), lambda m, x: m(x).mean(), facula.ones(4, 2), **options)
    with pytest.raises(ValueError, match="as many samples"):
        strict_backward(nn.Linear(2, 1), loss_of, (facula.ones(8, 2), facula.ones(4)), chunks=4)


def test_more_ranks_than_chunks():
    def work(rank):
        with pytest.raises(ValueError, match="no more ranks"):
            strict_backward(nn.Linear(2, 1), loss_of, facula.ones(2, 2), chunks=2)
        dist.barrier()

    threads.run(work, 4)
