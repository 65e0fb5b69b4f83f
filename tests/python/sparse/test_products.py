"""Products of sparse matrices against strided ones: dtypes, widths, layouts, corners, threads."""

import facula
import pytest

FLOATS = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
# Around the widths of vectors, and of blocks of columns.
WIDTHS = (0, 1, 3, 15, 16, 17, 64, 130)


def thin(rows, columns, dtype=facula.float64, seed=0):
    """Small integers, whose products are exact in every dtype, with rows without elements."""
    facula.manual_seed(seed)
    t = facula.randint(0, 3, (rows, columns)) * (facula.rand(rows, columns) < 0.3)
    t[::3] = 0
    return (t * (1 + 2j)).to(dtype) if dtype.is_complex else t.to(dtype)


def product(a, b):
    """The product, of strided matrices, in a dtype whose products are exact."""
    wide = facula.complex128 if a.is_complex() else facula.float64
    return (a.to(wide) @ b.to(wide)).to(a.dtype)


@pytest.mark.parametrize("layout", ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr"))
@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_a_sparse_matrix_times_a_strided_one(layout, dtype):
    a = thin(9, 12, getattr(facula, dtype))
    blocks = {"blocksize": (3, 4)} if layout == "sparse_bsr" else {}
    s = a.to_sparse(layout=getattr(facula, layout), **blocks)
    for width in WIDTHS:
        b = thin(12, width, a.dtype, seed=1)
        assert facula.equal(s @ b, product(a, b))
    assert facula.equal(s @ b[:, 0], product(a, b[:, :1])[:, 0])
    assert facula.equal(s @ thin(5, 12, a.dtype).t(), product(a, thin(5, 12, a.dtype).t()))


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS + ("bool",))
@pytest.mark.parametrize("layout", ("sparse_coo", "sparse_csr"))
def test_a_sparse_matrix_times_a_sparse_one(layout, dtype):
    for rows, inner, columns in ((9, 12, 7), (1, 1, 1), (4, 3, 5000), (40, 30, 200)):
        a = thin(rows, inner, getattr(facula, dtype))
        b = thin(inner, columns, getattr(facula, dtype), seed=1)
        found = a.to_sparse(layout=getattr(facula, layout)) @ b.to_sparse(
            layout=getattr(facula, layout)
        )
        expected = product(a.int(), b.int()).bool() if dtype == "bool" else product(a, b)
        assert found.dtype == a.dtype and facula.equal(found.to_dense(), expected)
        if layout == "sparse_csr":
            starts, places = found.crow_indices().tolist(), found.col_indices().tolist()
            for begin, end in zip(starts[:-1], starts[1:], strict=True):
                assert places[begin:end] == sorted(set(places[begin:end]))


def test_products_of_matrices_with_few_elements_for_their_size():
    n = 2**30
    a = facula.sparse_coo_tensor([[n - 1, 5], [7, n - 2]], [2.0, 3.0], (n, n))
    found = a @ a.t()
    assert found.indices().tolist() == [[5, n - 1], [5, n - 1]]
    assert found.values().tolist() == [9.0, 4.0]


def test_products_with_sizes_of_zero():
    for rows, inner, columns in ((0, 3, 2), (3, 0, 2), (3, 2, 0), (0, 0, 0)):
        for layout in (facula.sparse_coo, facula.sparse_csr):
            a = facula.zeros(rows, inner, layout=layout)
            b = facula.zeros(inner, columns, layout=layout)
            assert facula.equal(a @ facula.ones(inner, columns), facula.zeros(rows, columns))
            assert facula.equal((a @ b).to_dense(), facula.zeros(rows, columns))


def with_int32(s):
    parts = s.crow_indices().int(), s.col_indices().int(), s.values()
    return facula.sparse_csr_tensor(*parts, s.shape)


def test_indices_of_int32():
    a, b = thin(9, 12), thin(12, 9, seed=1)
    s, t = with_int32(a.to_sparse_csr()), with_int32(b.to_sparse_csr())
    assert facula.equal(s @ b, a @ b) and facula.equal(s @ b[:, 0], a @ b[:, 0])
    assert facula.equal((s @ t).to_dense(), a @ b)


@pytest.mark.parametrize("layout", ("sparse_coo", "sparse_csr", "sparse_csc"))
@pytest.mark.parametrize("dtype", FLOATS[2:])
def test_sampled_addmm_has_the_product_at_the_positions_of_self(layout, dtype):
    s = thin(9, 12, getattr(facula, dtype))
    for width in (0, 1, 5, 33):
        a, b = thin(9, width, s.dtype, seed=1), thin(width, 12, s.dtype, seed=2)
        found = facula.sparse.sampled_addmm(
            s.to_sparse(layout=getattr(facula, layout)), a, b, beta=2, alpha=3
        )
        expected = (2 * s + 3 * product(a, b)) * (s != 0)
        assert facula.equal(found.to_dense(), expected.to(s.dtype))


@pytest.mark.parametrize("layout", ("sparse_coo", "sparse_csr", "sparse_csc"))
@pytest.mark.parametrize("beta", (0.0, 0.5))
def test_sampled_addmm_takes_gradients_of_any_layout(layout, beta):
    dense = facula.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]], dtype=facula.float64)
    given = facula.arange(6.0, dtype=facula.float64).view(2, 3) + 1
    sampled = given * (dense != 0)
    for grad, of_self in ((given, given), (given.sparse_mask(dense.to_sparse()), sampled)):
        s = dense.to_sparse(layout=getattr(facula, layout)).requires_grad_()
        a = facula.ones(2, 4, dtype=s.dtype, requires_grad=True)
        b = facula.ones(4, 3, dtype=s.dtype, requires_grad=True)
        out = facula.sparse.sampled_addmm(s, a, b, beta=beta, alpha=2)
        grad = grad if grad.layout is facula.strided else grad.to_dense().sparse_mask(out.detach())
        found = facula.autograd.grad(out, (s, a, b), grad)
        assert facula.equal(found[0].to_dense(), beta * of_self)
        assert facula.equal(found[1], 2 * sampled @ b.mT.detach())
        assert facula.equal(found[2], 2 * a.mT.detach() @ sampled)


@pytest.mark.parametrize("dtype", FLOATS[:4])
def test_reduced_products(dtype):
    a = thin(9, 12, getattr(facula, dtype))
    for width in (1, 5, 70):
        b = thin(12, width, a.dtype, seed=1) - 1
        kept = a != 0
        each = (a[:, :, None].double() * b[None].double()).masked_fill(~kept[:, :, None], 0)
        low = each.masked_fill(~kept[:, :, None], float("inf")).amin(1)
        high = each.masked_fill(~kept[:, :, None], -float("inf")).amax(1)
        empty = ~kept.any(1, keepdim=True)
        expected = {
            "sum": each.sum(1),
            "mean": each.sum(1) / kept.sum(1, keepdim=True).clamp_min(1),
            "amin": low.masked_fill(empty, 0),
            "amax": high.masked_fill(empty, 0),
        }
        for how, values in expected.items():
            assert facula.equal(facula.sparse.mm(a.to_sparse_csr(), b, how), values.to(a.dtype))


def test_products_have_the_same_bits_at_any_number_of_threads():
    facula.manual_seed(0)
    x = facula.randn(700, 900) * (facula.rand(700, 900) < facula.linspace(0, 0.2, 700)[:, None])
    s, b = x.to_sparse_csr(), facula.randn(900, 40)

    def results():
        square = s @ x.t().to_sparse_csr()
        sampled = facula.sparse.sampled_addmm(s, facula.ones(700, 40) / 3, b.t())
        return [s @ b, s @ b[:, 0], square.values(), square.col_indices(), sampled.values()]

    threads = facula.get_num_threads()
    found = []
    for n in (1, 2, 5):
        facula.set_num_threads(n)
        found.append(results())
    facula.set_num_threads(threads)
    for other in found[1:]:
        assert all(facula.equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_rows_longer_than_a_block_of_products():
    facula.manual_seed(0)
    x = facula.randint(-3, 4, (300, 3000)).float()
    x[::2, 5:] = 0
    s, v = x.to_sparse_csr(), facula.arange(3000.0) % 7
    assert facula.equal(s @ v, x @ v)


def test_coalescing_adds_up_what_stands_at_one_position():
    facula.manual_seed(0)
    for size in (10, 3000):
        places = facula.randint(0, 50, (2, size)) * facula.tensor([[1], [10**6]])
        t = facula.sparse_coo_tensor(places, facula.ones(size), (50, 50 * 10**6)).coalesce()
        expected = {}
        for place in zip(*places.tolist(), strict=True):
            expected[place] = expected.get(place, 0) + 1
        found = list(zip(*t.indices().tolist(), strict=True))
        assert found == sorted(expected)
        assert t.values().tolist() == [expected[place] for place in found]


@pytest.mark.parametrize(
    "use",
    [lambda t: t @ t, lambda t: t @ facula.ones(2, 2), lambda t: t @ facula.ones(2)],
)
@pytest.mark.parametrize(
    "crow, col",
    [([0, 1, 2], [0, 9]), ([0, 1, 2], [-1, 0]), ([0, 2, 1], [0, 1]), ([0, 1, 3], [0, 1])],
)
def test_bad_indices_raise_in_products(use, crow, col):
    with pytest.raises(RuntimeError, match="indices"):
        use(facula.sparse_csr_tensor(crow, col, [1.0, 2.0], (2, 2)))
