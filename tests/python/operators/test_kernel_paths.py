"""Paths that kernels take by size, stride or range of values give what the plain ones give."""

import facula
import numpy as np
import pytest

F = facula.nn.functional
RNG = np.random.default_rng(5)


def uniform(*shape, low=-2.0, high=2.0):
    return RNG.random(shape) * (high - low) + low


def tensor(array, dtype="float32"):
    return facula.from_numpy(np.ascontiguousarray(array)).to(getattr(facula, dtype))


def assert_close(found, expected, rtol=1e-5, atol=1e-6):
    np.testing.assert_allclose(found.detach().double().numpy(), expected, rtol=rtol, atol=atol)


SHAPES = [(64, 64), (65, 131), (3, 200), (200, 5), (16, 16), (1001, 77)]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", SHAPES)
def test_copies_of_transposes(dtype, shape):
    values = RNG.integers(0, 200, shape).astype(dtype)
    found = facula.from_numpy(values).t().contiguous()
    assert (found.numpy() == values.T).all()


@pytest.mark.parametrize("order", [(2, 1, 0), (0, 2, 1), (1, 2, 0), (2, 0, 1)])
def test_copies_of_permuted_volumes(order):
    values = RNG.integers(0, 200, (33, 20, 70)).astype("int32")
    found = facula.from_numpy(values).permute(order).contiguous()
    assert (found.numpy() == values.transpose(order)).all()


@pytest.mark.parametrize("channels", [1, 3, 8, 70])
def test_copies_between_memory_formats(channels):
    values = uniform(2, channels, 19, 23).astype("float32")
    t = facula.from_numpy(values)
    last = t.contiguous(memory_format=facula.channels_last)
    assert (last.numpy() == values).all()
    assert (last.contiguous().numpy() == values).all()


def test_reversed_rows():
    values = uniform(7, 129).astype("float32")
    assert (facula.from_numpy(values).flip(1).numpy() == values[:, ::-1]).all()


@pytest.mark.parametrize("n", [1, 1000, 5003])
@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "int64", "float32", "complex128"])
def test_fills_of_one_byte_and_of_several(dtype, n):
    storage = facula.from_numpy(np.full(n + 8, 5).astype(dtype))
    for value in (0, -1, 1, 0x0101, 258):
        expected = np.full(n + 8, 5).astype(dtype)
        expected[3 : n + 3] = np.array(value).astype(dtype)
        storage.fill_(5)
        storage[3 : n + 3].fill_(int(expected[3].real))
        assert (storage.numpy() == expected).all()


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 16, 17, 64, 128, 129])
@pytest.mark.parametrize("other", ["row", "column", "transposed", "slice"])
def test_short_rows(n, other):
    rows = 1500
    a = uniform(rows, n)
    b = {
        "row": lambda: uniform(n),
        "column": lambda: uniform(rows, 1),
        "transposed": lambda: uniform(n, rows).T,
        "slice": lambda: uniform(rows, n + 3)[:, 1 : n + 1],
    }[other]()
    x, y = facula.from_numpy(a), facula.from_numpy(b)
    assert ((x + y).numpy() == a + b).all()
    assert ((y * x).numpy() == b * a).all()
    out = facula.zeros(rows, n + 2, dtype=facula.float64)[:, 1 : n + 1]
    facula.add(x, y, out=out)
    expected = a + b
    assert (out.numpy() == expected).all()
    x += y
    assert (x.numpy() == expected).all()


BLOCKS = {  # where a block of values leaves the range of the vectorised loop
    "near": [0.5, -1.25, 3.0, 0.0],
    "far": [0.5, 3.0e7, -1.0e12, 2.0],
    "special": [float("inf"), float("nan"), -0.0, 1.0],
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_trigonometry_by_blocks(name, kind, dtype):
    values = np.resize(np.array(BLOCKS[kind]), 1000)
    values[300:] = uniform(700)
    x = tensor(values, dtype)
    with np.errstate(invalid="ignore"):
        expected = getattr(np, name)(x.double().numpy())
    coarse = dtype == "bfloat16"
    assert_close(getattr(facula, name)(x), expected, 1e-2 if coarse else 1e-6, 1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("name, expected", [("fmod", np.fmod), ("remainder", np.mod)])
def test_remainders_by_blocks(name, expected, dtype):
    a, b = uniform(1000, low=-50, high=50), uniform(1000, low=1, high=9)
    a[700:710] = 1e30 if dtype != "int64" else 10**15
    b[::7] *= -1
    x, y = tensor(a, dtype), tensor(b, dtype)
    want = expected(x.numpy(), y.numpy()).astype(np.float64)
    assert_close(getattr(facula, name)(x, y), want, 1e-6)
    by_number = expected(x.numpy(), x.numpy().dtype.type(3)).astype(np.float64)
    assert_close(getattr(facula, name)(x, 3), by_number, 1e-6)


@pytest.mark.parametrize("low, high", [(-1, 1), (None, 0.5), (0.5, None), (1, -1)])
def test_clamp_keeps_nan(low, high):
    values = np.array([-3, -0.5, 0.25, 2, np.nan, np.inf, -np.inf])
    expected = np.clip(values, -np.inf if low is None else low, np.inf if high is None else high)
    assert_close(facula.clamp(facula.from_numpy(values), low, high), expected)


def test_clamp_by_nan_gives_nan():
    for bounds in ((float("nan"), 1.0), (0.0, float("nan"))):
        assert facula.clamp(facula.ones(40), *bounds).isnan().all().item()


@pytest.mark.parametrize("dtype", ["bool", "float32", "int64"])
@pytest.mark.parametrize("name", ["logical_and", "logical_or"])
def test_logic_of_every_pair(name, dtype):
    a = np.array([0, 0, 1, 1, 2, float("nan")] * 30)
    b = np.array([0, 1, 0, 1, 0, 1] * 30)
    if dtype == "int64":
        a = np.nan_to_num(a)
    x, y = tensor(a, dtype), tensor(b, dtype)
    expected = getattr(np, name)(x.numpy(), y.numpy())
    assert (getattr(facula, name)(x, y).numpy() == expected).all()


@pytest.mark.parametrize("value", [-6, 5, 2**63 - 1, -(2**63)])
def test_indices_outside_raise(value):
    x, i = facula.arange(5.0), facula.zeros(40, dtype=facula.int64)
    i[17] = value
    with pytest.raises(IndexError):
        x[i]
    with pytest.raises(RuntimeError):
        x.gather(0, i)


def test_scatter_paths():
    x, i = uniform(50, 24), RNG.integers(0, 24, (50, 24))
    values = uniform(50, 24)
    expected = x.copy()
    for row in range(50):
        np.add.at(expected[row], i[row], values[row])
    t, at, v = (facula.from_numpy(a) for a in (x, i, values))
    assert_close(t.scatter_add(1, at, v), expected, 1e-12)
    assert_close(t.gather(1, at), np.take_along_axis(x, i, 1), 0, 0)
    assert_close(t.gather(0, at), np.take_along_axis(x, i, 0), 0, 0)


def convolved(x, w, stride, padding, dilation, transposed):
    function = F.conv_transpose2d if transposed else F.conv2d
    return function(x, w, stride=stride, padding=padding, dilation=dilation, groups=w.shape[0])


@pytest.mark.parametrize("channels", [2, 16, 37, 70])
@pytest.mark.parametrize("stride, padding, dilation", [(1, 1, 1), (2, 1, 1), (1, 0, 2), (3, 2, 2)])
@pytest.mark.parametrize("transposed", [False, True])
def test_depthwise_in_channels_last(channels, stride, padding, dilation, transposed):
    found = []
    values, kernel = uniform(3, channels, 11, 9), uniform(channels, 1, 3, 2)
    for last in (False, True):
        x, w = facula.from_numpy(values), facula.from_numpy(kernel)
        if last:
            x = x.contiguous(memory_format=facula.channels_last)
        x.requires_grad_()
        w.requires_grad_()
        y = convolved(x, w, stride, padding, dilation, transposed)
        weights = facula.arange(float(y.numel()), dtype=facula.float64).view(y.shape).sin()
        if last:
            weights = weights.contiguous(memory_format=facula.channels_last)
        found.append([y, *facula.autograd.grad(y, (x, w), weights)])
    for plain, by_channels in zip(*found, strict=True):
        assert_close(by_channels, plain.detach().numpy(), 1e-10, 1e-11)


@pytest.mark.parametrize("size, stride, padding", [(2, 2, 0), (3, 2, 1), (3, 1, 0), (2, 3, 0)])
@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d"])
def test_pooling_backward_by_layout(name, size, stride, padding):
    values = uniform(2, 70, 13, 150)
    found = []
    for last in (False, True):
        x = facula.from_numpy(values)
        if last:
            x = x.contiguous(memory_format=facula.channels_last)
        x.requires_grad_()
        y = getattr(F, name)(x, size, stride, padding)
        weights = facula.arange(float(y.numel()), dtype=facula.float64).view(y.shape).sin()
        if last:
            weights = weights.contiguous(memory_format=facula.channels_last)
        found.append(facula.autograd.grad(y, x, weights)[0])
    assert_close(found[1], found[0].numpy(), 1e-12)
    moved = values.copy()
    moved[1, 3, 6, 70] += 1e-6
    change = getattr(F, name)(facula.from_numpy(moved), size, stride, padding)
    change = change - getattr(F, name)(facula.from_numpy(values), size, stride, padding)
    slope = (change * weights).sum().item() / 1e-6
    assert abs(slope - found[0][1, 3, 6, 70].item()) < 1e-4


POOLS = [  # kernel, stride, padding, ceil_mode, count_include_pad, divisor_override
    (2, 2, 0, False, True, None), (3, 2, 1, False, True, None), (3, 2, 1, True, False, None),
    (3, 1, 1, False, False, None), (2, 3, 0, True, True, None), (5, 2, 2, True, True, 7),
    ((1, 4), (1, 4), (0, 2), False, True, None), ((3, 2), (2, 1), (1, 0), False, True, -2),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64"])
@pytest.mark.parametrize("width", [4, 13, 28, 129, 1500])
@pytest.mark.parametrize("pool", POOLS, ids=str)
def test_average_pooling_by_layout(pool, width, dtype):
    """Rows by sums of columns, and windows one by one with the channels innermost."""
    x = tensor(np.round(uniform(2, 3, 9, width, low=-9, high=9)), dtype)
    last = x.movedim(1, -1).contiguous().movedim(-1, 1)
    found, expected = F.avg_pool2d(x, *pool), F.avg_pool2d(last, *pool)
    assert found.shape == expected.shape and found.dtype == x.dtype
    assert_close(found, expected.double().numpy(), rtol=1e-2 if dtype == "bfloat16" else 1e-6)


@pytest.mark.parametrize("scale", [1, 2, 3, 0.5, 1.7])
def test_nearest_backward_sums_what_was_copied(scale):
    x = facula.rand(2, 3, 9, 14, dtype=facula.float64, requires_grad=True)
    y = F.interpolate(x, scale_factor=scale, mode="nearest")
    weights = facula.rand(y.shape, dtype=facula.float64)
    grad = facula.autograd.grad(y, x, weights)[0]
    assert_close((grad * x).sum(), (y * weights).sum().item(), 1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("width", [1, 7, 16, 40, 64, 150])
def test_bags_of_every_width(width, dtype):
    table = tensor(uniform(60, width), dtype)
    numbers = RNG.integers(0, 60, (11, 20))
    found = F.embedding_bag(facula.from_numpy(numbers), table, mode="sum")
    coarse = dtype == "bfloat16"
    expected = table.double().numpy()[numbers].sum(1)
    assert_close(found, expected, 1e-2 if coarse else 1e-5, 1e-1 if coarse else 1e-5)


PRODUCTS = [(1, 1, 1), (5, 3, 40), (14, 64, 32), (33, 127, 65), (100, 1500, 70), (600, 40, 1100)]


@pytest.mark.parametrize("m, k, n", PRODUCTS)
@pytest.mark.parametrize("layout", ["plain", "transposed left", "transposed right"])
def test_products_of_bfloat16(m, k, n, layout):
    a, b = tensor(uniform(m, k), "bfloat16"), tensor(uniform(k, n), "bfloat16")
    expected = a.double().numpy() @ b.double().numpy()
    if layout == "transposed left":
        a = a.t().contiguous().t()
    if layout == "transposed right":
        b = b.t().contiguous().t()
    found = (a @ b).double().numpy()
    # Half a unit of the last place of the result, and the rounding of sums in float.
    bound = np.abs(expected) * 2.0**-8 + k * 4 * 2.0**-22
    assert (np.abs(found - expected) <= bound).all()


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("rows, n", [(1, 1), (3, 5), (17, 16), (40, 63), (2, 5000)])
def test_softmax_rows(name, rows, n):
    x = uniform(rows, n, low=-80, high=80)
    shifted = x - x.max(1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    expected = logs if name == "log_softmax" else np.exp(logs)
    assert_close(getattr(F, name)(facula.from_numpy(x), 1), expected, 1e-12, 1e-12)
    single = getattr(F, name)(tensor(x), 1)
    assert_close(single, expected, 1e-4, 1e-5)


def test_softmax_of_infinities():
    inf = float("inf")
    x = facula.tensor([[0.0, -inf, 0.0], [-inf, -inf, -inf], [inf, 0.0, 0.0]])
    found = F.softmax(x, 1).tolist()
    assert found[0] == [0.5, 0.0, 0.5]
    assert all(v != v for v in found[1] + found[2])


def ulps_of_exp(dtype, low, high):
    x = np.linspace(low, high, 200_001).astype(dtype)
    wide = np.exp(x.astype(np.longdouble))
    unit = np.spacing(wide.astype(dtype)).astype(np.longdouble)
    found = facula.exp(facula.from_numpy(x)).numpy().astype(np.longdouble)
    return float((np.abs(found - wide) / unit).max())


@pytest.mark.parametrize("dtype, low, high", [
    ("float32", -103, 88.7), ("float32", -1, 1), ("float64", -740, 709), ("float64", -1, 1),
])  # fmt: skip
def test_exp_is_within_its_bound(dtype, low, high):
    assert ulps_of_exp(dtype, low, high) < 1.1


def test_bincount_of_extremes():
    values = np.array([7, 0, 3, 3, 0, 7, 7] * 9)
    found = facula.bincount(facula.from_numpy(values))
    assert (found.numpy() == np.bincount(values)).all()
    with pytest.raises(RuntimeError):
        facula.bincount(facula.tensor([1, -1, 2]))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("last", [False, True])
def test_convolution_of_no_channels(dtype, last):
    x = tensor(np.zeros((2, 0, 8, 8)), dtype)
    if last:
        x = x.contiguous(memory_format=facula.channels_last)
    found = F.conv2d(x, tensor(np.zeros((16, 0, 3, 3)), dtype))
    assert found.shape[0] == 2 and found.sum().item() == 0


@pytest.mark.parametrize("offset", [0, 1])
def test_bfloat16_operands_at_odd_places(offset):
    values = uniform(2, 3, 5, 16 + offset).astype("float32")
    q = tensor(values, "bfloat16")[..., offset:]
    aligned = q.clone()
    assert_close(
        F.scaled_dot_product_attention(q, q, q),
        F.scaled_dot_product_attention(aligned, aligned, aligned).double().numpy(),
    )
    w = tensor(uniform(1 + 16 * 4 * 9), "bfloat16")[offset : offset + 16 * 4 * 9]
    w = w.view(16, 3, 3, 4).permute(0, 3, 1, 2)
    x = tensor(uniform(1, 4, 6, 6), "bfloat16")
    assert_close(F.conv2d(x, w), F.conv2d(x, w.clone()).double().numpy())
