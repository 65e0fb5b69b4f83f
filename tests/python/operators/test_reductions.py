"""Half types reduce in float, in the same order; counts share loops between dtypes of a size."""

import math

import facula
import pytest

HALVES = (facula.float16, facula.bfloat16)
SHAPES = (
    *((7,), (33,), (2100,), (5000,), (3, 300), (70, 5), (130, 16), (9, 50), (40, 700)),
    *((4, 3, 9, 9), (0, 4)),
)


def layouts(x):
    """A tensor, and the same numbers in other orders of memory."""
    yield x
    if x.dim() > 1:
        yield x.transpose(0, -1)
        yield x[..., ::2]
        yield x[1:]


def dims(x):
    yield tuple(range(x.dim()))
    yield from ((d,) for d in range(x.dim()))


REDUCTIONS = {
    "sum": lambda x, d: facula.sum(x, d),
    "nansum": lambda x, d: facula.nansum(x, d),
    "mean": lambda x, d: facula.mean(x, d),
    "var": lambda x, d: facula.var(x, d),
    "amax": lambda x, d: facula.amax(x, d),
    "norm": lambda x, d: facula.linalg.vector_norm(x, 3, d),
    "norm_inf": lambda x, d: facula.linalg.vector_norm(x, math.inf, d),
}


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_half_types_reduce_as_floats_do(name, dtype):
    generator = facula.Generator().manual_seed(3)
    for shape in SHAPES:
        if name in ("amax", "norm_inf") and 0 in shape:
            continue
        whole = facula.randn(shape, generator=generator).to(dtype)
        # Layouts are taken of both, so that both are walked in the same order.
        for x, wide in zip(layouts(whole), layouts(whole.float()), strict=True):
            for d in dims(x):
                got, want = REDUCTIONS[name](x, d), REDUCTIONS[name](wide, d).to(dtype)
                assert got.dtype == dtype
                same = (got == want) | (got.isnan() & want.isnan())
                assert bool(same.all()), (shape, x.stride(), d)


@pytest.mark.parametrize("dtype", [facula.int32, facula.int64, facula.float32, facula.float64])
@pytest.mark.parametrize("n", [1, 3, 4, 7, 8, 9, 15, 16, 20, 31, 33, 40, 63, 64])
def test_short_rows_side_by_side(n, dtype):
    """Some rows go side by side; each row's result is that of the row alone."""
    generator = facula.Generator().manual_seed(4)
    for rows in (2, 5, 64, 131):
        x = facula.randint(-9, 9, (rows, n), generator=generator).to(dtype)
        for name in ("sum", "amax", "mean", "prod"):
            if name == "mean" and not dtype.is_floating_point:
                continue
            small = x.sign() if name == "prod" else x
            reduce = getattr(facula, name)
            alone = facula.stack([reduce(row, 0) for row in small])
            assert facula.allclose(reduce(small, 1), alone, rtol=1e-6), (name, rows)


@pytest.mark.parametrize("shape", [(100_000,), (3, 5000), (70, 40), (2, 70_001)])
def test_sums_of_bytes_do_not_overflow(shape):
    ones, most = facula.ones(shape, dtype=facula.bool), facula.full(shape, 255, dtype=facula.uint8)
    for d in dims(ones):
        count = math.prod(shape[k] for k in d)
        assert bool((ones.sum(d) == count).all()) and bool((most.sum(d) == 255 * count).all()), d
        assert bool((most.view(facula.bool).sum(d) == count).all()), d


INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("dtype", [facula.float32, facula.float64, *HALVES], ids=str)
@pytest.mark.parametrize(
    "row, expected",
    [
        *(([INF, 1, 2], INF), ([-INF, -INF], -INF), ([-INF, 0], 0), ([INF, -INF], INF)),
        *(([NAN, 1], NAN), ([INF, NAN], NAN), ([-INF, NAN], NAN), ([INF, INF], INF)),
        *(([1000, 1000], 1000 + math.log(2)), ([-1000, -1000], -1000 + math.log(2)), ([3], 3)),
    ],
)
def test_logsumexp_of_special_rows(row, expected, dtype):
    for x, d in ((facula.tensor(row, dtype=dtype), 0), (facula.tensor([row] * 9, dtype=dtype), 1)):
        for found in (facula.logsumexp(x, d), facula.logsumexp(x.T.contiguous(), 0)):
            want = facula.full_like(found, expected)
            assert facula.allclose(found, want, rtol=1e-3, equal_nan=True), (row, d)


@pytest.mark.parametrize("dtype", [facula.float32, facula.float64], ids=str)
def test_logsumexp_of_every_dimension(dtype):
    for shape in SHAPES:
        if 0 in shape:
            continue
        for x in layouts(facula.randn(shape, generator=facula.Generator().manual_seed(5)) * 4):
            for d in dims(x):
                want = x.double().exp().sum(d).log()
                found = facula.logsumexp(x.to(dtype), d)
                assert facula.allclose(found.double(), want, rtol=1e-6, atol=1e-6), (shape, d)


ZEROS = {
    facula.float32: [0.0, -0.0],
    facula.float64: [0.0, -0.0],
    facula.float16: [0.0, -0.0],
    facula.bfloat16: [0.0, -0.0],
    facula.complex64: [0j, complex(-0.0, -0.0)],
    facula.complex128: [0j, complex(0.0, -0.0)],
    facula.int8: [0, 0],
    facula.int64: [0, 0],
    facula.bool: [False, False],
}
OTHERS = {
    facula.float32: [math.nan, math.inf, -1e-30],
    facula.float64: [math.nan, -math.inf, 1e-300],
    facula.float16: [math.nan, math.inf, -6e-8],
    facula.bfloat16: [math.nan, -1.0, 1e-30],
    facula.complex64: [complex(0, math.nan), complex(-1, 0), 1j],
    facula.complex128: [complex(0, -1e-300), complex(math.inf, 0), 1j],
    facula.int8: [-128, 1, 127],
    facula.int64: [-(2**63), 1 << 40, 1],
    facula.bool: [True, True, True],
}


@pytest.mark.parametrize("dtype", ZEROS, ids=str)
@pytest.mark.parametrize("repeats", (1, 20, 700))
def test_what_counts_as_zero(dtype, repeats):
    zeros = facula.tensor(ZEROS[dtype] * repeats, dtype=dtype)
    others = facula.tensor(OTHERS[dtype] * repeats, dtype=dtype)
    both = facula.cat([zeros, others])
    assert facula.count_nonzero(both).item() == len(others)
    assert [facula.any(t).item() for t in (zeros, others, both)] == [False, True, True]
    assert [facula.all(t).item() for t in (zeros, others, both)] == [False, True, False]
    columns = facula.stack([zeros, zeros], 1)
    assert facula.count_nonzero(columns, 0).tolist() == [0, 0]
    assert facula.any(columns, 0).tolist() == [False, False]


def test_results_of_any_are_bytes_for_bytes_alone():
    assert facula.any(facula.tensor([0, 3], dtype=facula.uint8)).dtype == facula.uint8
    assert facula.all(facula.tensor([0, 3], dtype=facula.int8)).dtype == facula.bool
    assert facula.any(facula.zeros(2, 3), ()).shape == (2, 3)


def test_products_of_small_integers_are_int64():
    for dtype, values, product in (
        (facula.bool, [True, True, True], 1),
        (facula.bool, [True, False], 0),
        (facula.uint8, [200, 200], 40000),
        (facula.int32, [2**20, 2**20], 2**40),
    ):
        got = facula.prod(facula.tensor(values, dtype=dtype))
        assert (got.dtype, got.item()) == (facula.int64, product)
