"""Running extrema, counts, chosen columns and joined elements give what plain loops give."""

import math

import facula
import numpy as np
import pytest

F = facula.nn.functional
RNG = np.random.default_rng(12)
INF, NAN = math.inf, math.nan

ROWS = {
    "drawn": lambda n: RNG.standard_normal(n),
    "few values": lambda n: RNG.integers(-2, 3, n),
    "rising": lambda n: np.arange(n),
    "falling": lambda n: -np.arange(n),
    "zeros of both signs": lambda n: np.where(RNG.random(n) < 0.5, 0.0, -0.0),
    "infinities": lambda n: RNG.choice([INF, -INF, 0.0], n),
    "lowest": lambda n: np.full(n, -INF),
    "a NaN": lambda n: np.where(np.arange(n) == n // 2, NAN, RNG.standard_normal(n)),
    "NaN first": lambda n: np.where(np.arange(n) == 0, NAN, RNG.standard_normal(n)),
}


def running(row, takes):
    best, at, values, places = row[0], 0, [], []
    for i, v in enumerate(row):
        if v != v or (best == best and takes(v, best)):
            best, at = v, i
        values.append(best)
        places.append(at)
    return np.array(values), np.array(places)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "bfloat16"])
@pytest.mark.parametrize("kind", ROWS)
def test_running_extrema(kind, dtype):
    for n in (1, 7, 8, 9, 16, 61):
        drawn = ROWS[kind](n)
        if dtype.startswith("int") and not np.isfinite(drawn).all():
            continue
        x = facula.from_numpy(drawn).to(getattr(facula, dtype))
        wide = x.double().numpy() if x.is_floating_point() else x.numpy()
        for name, takes in (("cummax", np.greater_equal), ("cummin", np.less_equal)):
            values, places = getattr(facula, name)(facula.stack([x, x]), 1)
            expected, at = running(wide, takes)
            for row in (0, 1):
                found = values[row].to(facula.float64).numpy()
                np.testing.assert_array_equal(found, expected)
                np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
                np.testing.assert_array_equal(places[row].numpy(), at)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 5, 1000, 200_001])
def test_histograms(n, dtype):
    x = facula.from_numpy(RNG.integers(-40, 41, n) / 4.0).to(getattr(facula, dtype))
    values = x.numpy()
    for bins in (1, 7, 80, 5000):
        for low, high in ((-10, 10), (-3, 4), (0, 0)):
            found = facula.histc(x, bins, low, high).numpy()
            if (low, high) == (0, 0):
                low, high = values.min(), values.max()
            if low == high:
                low, high = low - 1, high + 1
            inside = values[(values >= low) & (values <= high)].astype(dtype)
            first, size = np.dtype(dtype).type(low), np.dtype(dtype).type(high - low)
            at = ((inside - first) * bins / size).astype(int).clip(0, bins - 1)
            np.testing.assert_array_equal(found, np.bincount(at, minlength=bins))


@pytest.mark.parametrize("bad", [NAN, INF])
@pytest.mark.parametrize("at", [0, 70_000, 99_999])
def test_histograms_over_no_finite_range_are_refused(at, bad):
    x = facula.zeros(100_000)
    x[at] = bad
    with pytest.raises(RuntimeError, match="range of"):
        facula.histc(x)
    assert facula.histc(x, 4, -1, 1).sum() == 99_999


@pytest.mark.parametrize("n, bins", [(10, 3), (100_000, 50), (100_000, 200_000)])
def test_counts_of_integers(n, bins):
    numbers = RNG.integers(0, bins, n)
    found = facula.bincount(facula.from_numpy(numbers), minlength=bins).numpy()
    np.testing.assert_array_equal(found, np.bincount(numbers, minlength=bins))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("rows, width", [(1, 5), (3, 4), (4, 1), (7, 40), (3001, 33)])
def test_chosen_columns(rows, width, dtype):
    values = RNG.integers(0, 100, (rows, width)).astype(dtype)
    x = facula.from_numpy(values)
    for chosen in (RNG.integers(0, width, 1), RNG.integers(0, width, 21)):
        index = facula.from_numpy(chosen)
        expected = values[:, chosen]
        assert (x.index_select(1, index).numpy() == expected).all()
        assert (x[:, index].numpy() == expected).all()
        assert (x.flip(0).T.index_select(0, index).T.numpy() == expected[::-1]).all()
    for outside in (-1, width):
        with pytest.raises(IndexError):
            x.index_select(1, facula.tensor([0, outside]))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("bad", [1.5, -0.25, NAN, INF])
def test_probabilities_are_checked(bad, dtype):
    p = facula.full((70_000,), 0.5, dtype=getattr(facula, dtype))
    assert F.binary_cross_entropy(p, p).isfinite()
    for at in (0, 40_000, 69_999):
        wrong = p.clone()
        wrong[at] = bad
        for pair in ((wrong, p), (p, wrong)):
            with pytest.raises(RuntimeError, match="should be between 0 and 1"):
                F.binary_cross_entropy(*pair)


@pytest.mark.parametrize("width", [1, 16, 24, 100])
def test_means_of_bags_pass_over_padding(width):
    table, bags = RNG.standard_normal((50, width)), RNG.integers(0, 5, (9, 6))
    bags[0], bags[1, 1:] = 3, 3
    found = F.embedding_bag(
        facula.from_numpy(bags), facula.from_numpy(table), mode="mean", padding_idx=3
    )
    for bag, mean in zip(bags, found.numpy(), strict=True):
        rows = table[bag[bag != 3]]
        np.testing.assert_allclose(mean, rows.mean(0) if len(rows) else 0 * mean, 1e-12, 1e-12)


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(1,), (3, 7), (2, 9001), (0, 3), ()])
def test_elements_in_turns(shape, dtype):
    for count in (1, 2, 3, 4, 5):
        values = [RNG.integers(0, 2 if dtype == "bool" else 99, shape) for _ in range(count)]
        arrays = [np.asarray(v).astype(dtype) for v in values]
        expected = np.stack(arrays, -1)
        dense = [facula.from_numpy(a) for a in arrays]
        apart = [facula.from_numpy(np.stack([a, a], -1))[..., 0] for a in arrays]
        for tensors in (dense, apart, [dense[0], *apart[1:]]):
            found = facula.stack(tensors, -1)
            assert (found.numpy() == expected).all() and found.is_contiguous()
        into = facula.empty((*shape, 2 * count), dtype=getattr(facula, dtype))[..., ::2]
        assert (facula.stack(dense, -1, out=into).numpy() == expected).all()
