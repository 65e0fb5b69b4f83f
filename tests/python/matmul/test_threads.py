"""Products that threads share out by columns or by rows: the same bits at any number of them."""

import facula
import pytest

COLUMNS = [(128, 300, 1024), (33, 513, 777), (257, 256, 1030), (64, 1024, 300), (500, 260, 1024)]
# Rows that no number of threads divides, also where jobs of one row less have higher tiles.
ROWS = [(55, 256, 96), (113, 256, 200), (701, 300, 96), (1025, 40, 130)]


@pytest.fixture(autouse=True)
def threads_restored():
    before = facula.get_num_threads()
    yield
    facula.set_num_threads(before)


def products(x, right, bias):
    """Several ways to the product, and one that lies within a wider matrix."""
    wide = x.new_zeros(x.shape[0], right.shape[1] + 5)
    facula.mm(x, right, out=wide[:, 2:-3])
    columns = right.t().contiguous().t()
    return [
        wide,
        x @ columns,
        facula.addmm(bias, x, columns),
        facula.addmm(x.new_ones(wide[:, 5:].shape), x, right, beta=0.5, alpha=2),
        facula._addmm_activation(bias, x, columns, use_gelu=True),
    ]


@pytest.mark.parametrize("dtype", [facula.float32, facula.float64], ids=str)
@pytest.mark.parametrize("shape", COLUMNS + ROWS, ids=str)
def test_threads_share_out_work_with_the_same_bits(shape, dtype):
    m, k, n = shape
    facula.manual_seed(0)
    x, right, bias = (facula.randn(*s, dtype=dtype) for s in ((m, k), (k, n), (n,)))
    facula.set_num_threads(1)
    alone = products(x, right, bias)
    for threads in (2, 3, 8):
        facula.set_num_threads(threads)
        for expected, found in zip(alone, products(x, right, bias), strict=True):
            assert facula.equal(expected, found)
    exact = x.double() @ right.double()
    assert facula.allclose(alone[1].double(), exact, rtol=1e-4, atol=1e-3)
