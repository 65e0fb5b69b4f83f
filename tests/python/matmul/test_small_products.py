"""Products of small matrices: the same bits alone, in a batch, and on any threads."""

import facula
import pytest

SHAPES = [(3, 3, 3), (16, 16, 16), (2, 17, 5), (7, 1, 9), (1, 5, 20), (64, 64, 10), (40, 3, 130)]


def same_bits(a, b):
    return a.shape == b.shape and facula.equal(a, b)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [facula.float32, facula.float64], ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_a_batch_has_the_bits_of_its_products(dtype, shape, transposed):
    m, k, n = shape
    facula.manual_seed(m + n + k)
    a, b = facula.randn(300, m, k, dtype=dtype), facula.randn(300, k, n, dtype=dtype)
    if transposed:
        b = b.mT.contiguous().mT
    before = facula.get_num_threads()
    try:
        for threads in (1, 2, 3):
            facula.set_num_threads(threads)
            together = facula.bmm(a, b)
            added = facula.baddbmm(together, a, b, beta=2, alpha=3)
            for i in range(0, 300, 37):
                assert same_bits(together[i], a[i] @ b[i])
                assert same_bits(added[i], facula.addmm(together[i], a[i], b[i], beta=2, alpha=3))
    finally:
        facula.set_num_threads(before)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [facula.float32, facula.float64], ids=str)
def test_a_bias_has_the_bits_of_a_matrix_of_it(dtype, shape):
    m, k, n = shape
    facula.manual_seed(m + n + k)
    a, b, bias = (facula.randn(*s, dtype=dtype) for s in ((m, k), (k, n), (n,)))
    assert same_bits(facula.addmm(bias, a, b), facula.addmm(bias.expand(m, n).contiguous(), a, b))


@pytest.mark.parametrize("rows", [4, 25, 1000])
@pytest.mark.parametrize("columns", [3, 64, 200])
def test_rows_have_the_bits_they_have_in_fewer(rows, columns):
    facula.manual_seed(rows)
    a, b = facula.randn(rows, 12), facula.randn(12, columns)
    whole = a @ b
    for cut in (2, rows // 2, rows - 2):
        assert same_bits(whole[:cut], a[:cut] @ b)
        assert same_bits(whole[cut:], a[cut:] @ b)
