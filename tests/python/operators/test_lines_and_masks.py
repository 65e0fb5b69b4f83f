"""Ways that kernels take for rows, masks, prefixes, lines of images and orders give what plain ones
give."""

import facula
import numpy as np
import pytest

F = facula.nn.functional
RNG = np.random.default_rng(11)


def numbers(*shape, dtype="float32"):
    return facula.from_numpy(RNG.standard_normal(shape)).to(getattr(facula, dtype))


def bits(t):
    return t.view(facula.uint8).numpy().tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 10, 15, 16, 17, 31, 33, 48, 63, 64, 65])
def test_rows_have_the_bits_of_each_alone(n, dtype):
    x = numbers(35, n, dtype=dtype)
    x[3, 0], x[4, n - 1], x[5] = float("inf"), float("nan"), -float("inf")
    grad = numbers(35, n, dtype=dtype)
    for name in ("softmax", "log_softmax"):
        results = []
        for parts in (1, 35):
            leaf = x.clone().requires_grad_()
            y = facula.cat([getattr(F, name)(part, -1) for part in leaf.chunk(parts)])
            y.backward(grad)
            results.append((bits(y.detach()), bits(leaf.grad)))
        assert results[0] == results[1]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "int64", "complex128"])
@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 100, 20000, 40001])
def test_masks_of_every_length(n, dtype):
    bytes_ = (RNG.random(n) < 0.4) * RNG.integers(1, 256, n)
    mask = facula.from_numpy(bytes_.astype("uint8")).view(facula.bool)  # any byte but 0 is true
    chosen = bytes_ != 0
    values = RNG.integers(0, 100, n).astype(dtype)
    x = facula.from_numpy(values)
    assert (x[mask].numpy() == values[chosen]).all()
    source = RNG.integers(100, 200, n + 1).astype(dtype)
    expected = values.copy()
    expected[chosen] = source[: chosen.sum()]
    assert (x.masked_scatter(mask, facula.from_numpy(source)).numpy() == expected).all()
    assert (mask.nonzero().numpy() == np.argwhere(chosen)).all()
    assert (x.nonzero().numpy() == np.argwhere(values)).all()


@pytest.mark.parametrize("shape", [(3, 5), (7, 300), (300, 7), (2, 3, 257), (1, 1, 1)])
def test_coordinates_of_what_is_not_zero(shape):
    values = RNG.integers(0, 3, shape)
    expected = np.argwhere(values)
    x = facula.from_numpy(values)
    assert (x.nonzero().numpy() == expected).all()
    half = len(expected) // 2
    assert (x.nonzero_static(size=half).numpy() == expected[:half]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32"])
@pytest.mark.parametrize("n", [1, 7, 8, 9, 100, 1000])
def test_prefixes(n, dtype):
    x = (numbers(3, n) * 4).to(getattr(facula, dtype))
    wide = x.double().numpy()
    tolerance = 0.05 if dtype == "bfloat16" else 1e-6
    np.testing.assert_allclose(x.cumsum(1).double().numpy(), wide.cumsum(1), tolerance, tolerance)
    near = facula.from_numpy(1 + 0.01 * RNG.standard_normal((3, n))).float()
    np.testing.assert_allclose(near.cumprod(1).numpy(), near.double().numpy().cumprod(1), 1e-6)


@pytest.mark.parametrize("at", [0, 3, 8, 20])
def test_prefixes_of_what_is_not_finite(at):
    x = numbers(24).abs()
    for value in (float("inf"), float("nan")):
        x[at] = value
        found = x.cumsum(0).numpy()
        assert np.isfinite(found[:at]).all()
        np.testing.assert_equal(found[at:], np.full(24 - at, value, "float32"))
    assert bits(-facula.zeros(9).cumsum(0)) == bits(-facula.zeros(9))


SCALES = {"nearest": (2, 3, 0.5, 1.7), "bilinear": (2, 2.5, 0.6, 1), "bicubic": (2, 0.7)}
CASES = [(mode, scale) for mode, scales in SCALES.items() for scale in scales]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("mode, scale", CASES)
@pytest.mark.parametrize("size", [(5, 7), (1, 2), (40, 33)])
def test_resampling_of_layouts_and_its_transpose(size, mode, scale, dtype):
    def resampled(t):
        return F.interpolate(t, scale_factor=scale, mode=mode)

    x = numbers(2, 3, *size, dtype=dtype)
    if min(s * scale for s in size) < 1:
        return
    leaves = [x.double(), x.clone(), x.clone().contiguous(memory_format=facula.channels_last)]
    leaves.append(x.expand(2, 2, 3, *size)[0].clone().transpose(2, 3).contiguous().transpose(2, 3))
    grad, expected = None, None
    for leaf in leaves:
        leaf.requires_grad_()
        y = resampled(leaf)
        grad = numbers(*y.shape, dtype=dtype) if grad is None else grad
        y.backward(grad.to(y.dtype))
        found = [y.detach().double().numpy(), leaf.grad.double().numpy()]
        expected = expected or found
        for f, e in zip(found, expected, strict=True):
            np.testing.assert_allclose(f, e, *((2e-5, 2e-5) if dtype == "float32" else (0.05, 0.1)))
    y, back = expected
    np.testing.assert_allclose(
        (y * grad.double().numpy()).sum(), (back * x.double().numpy()).sum(), 1e-9, 1e-9
    )


@pytest.mark.parametrize("scale", [2, 0.5, 1.5])
def test_resampling_of_volumes_is_that_of_planes(scale):
    x = numbers(2, 4, 4, 6, 5)
    y = F.interpolate(x, scale_factor=scale, mode="trilinear")
    planes = F.interpolate(x.reshape(8, 4, 6, 5), scale_factor=scale, mode="bilinear")
    depth = planes.reshape(2, 4, 4, -1).transpose(2, 3).reshape(2, -1, 4)
    expected = F.interpolate(depth, scale_factor=scale, mode="linear")
    expected = expected.reshape(2, 4, *y.shape[3:], -1).permute(0, 1, 4, 2, 3)
    np.testing.assert_allclose(y.numpy(), expected.numpy(), 1e-5, 1e-5)


def drawn(dtype, *shape):
    """Numbers of many, few and no different values."""
    if dtype.startswith("float"):
        x = RNG.standard_normal(shape).astype(dtype)
        x.flat[:: max(1, x.size // 3)] = (np.nan, -0.0, np.inf, 0.0)[x.size % 4]
        return x
    low, high = (0, 3) if dtype == "uint8" else (-(10**5), 10**5)
    return RNG.integers(low, high, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int16", "int64"])
@pytest.mark.parametrize("n", [1, 5, 6, 31, 33, 64, 65, 128, 511, 70000])
def test_orders_of_every_length(n, dtype):
    values = drawn("int32" if dtype == "int16" else dtype, max(1, 300 // n), n).astype(dtype)
    order = np.argsort(values, 1, kind="stable")
    expected = np.take_along_axis(values, order, 1)
    x = facula.from_numpy(values)
    found, indices = x.sort(dim=1, stable=True)
    np.testing.assert_equal(found.numpy(), expected)
    assert (indices.numpy() == order).all()
    np.testing.assert_equal(x.t().sort(dim=0, stable=True)[1].t().numpy(), order)
    for k in {1, n // 3 or 1, n}:
        top = x.topk(k, 1, largest=False)
        np.testing.assert_equal(top[0].numpy(), expected[:, :k])
        kth = x.kthvalue(k, 1)
        np.testing.assert_equal(kth[0].numpy(), expected[:, k - 1])
        assert (kth[1].numpy() == order[:, k - 1]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int64"])
@pytest.mark.parametrize("length", [1, 2, 33, 64, 1000])
def test_places_in_rows(length, dtype):
    row, values = map(facula.from_numpy, (np.sort(drawn(dtype, length)), drawn(dtype, 70)))
    for right in (False, True):
        # With a sorter, values are searched for one by one.
        expected = facula.searchsorted(row, values, right=right, sorter=facula.arange(length))
        for count in (1, 31, 32, 70):
            found = facula.searchsorted(row, values[:count], right=right)
            assert facula.equal(found, expected[:count])
        rows = facula.stack([row, row])
        found = facula.searchsorted(rows, facula.stack([values, values]), right=right)
        assert facula.equal(found, facula.stack([expected, expected]))
