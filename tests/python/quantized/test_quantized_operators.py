"""Operators of `facula.ops.quantized`: each gives the nearest quantized value."""

import facula
import pytest
from facula.nn import functional as F

ops = facula.ops.quantized


def quantized(*sizes, scale=0.05, zero_point=120):
    return facula.quantize_per_tensor(facula.randn(*sizes), scale, zero_point, facula.quint8)


def weight_of(*sizes, centred=True):
    zeros = facula.zeros(sizes[0]) if centred else facula.arange(sizes[0]) % 5 - 2
    scales = facula.linspace(0.01, 0.03, sizes[0]).double()
    return facula.quantize_per_channel(facula.randn(*sizes), scales, zeros.long(), 0, facula.qint8)


def check_near(got, values, scale, zero_point):
    expected = facula.quantize_per_tensor(values, scale, zero_point, facula.quint8)
    assert got.shape == expected.shape and got.q_scale() == scale
    # Sums in float round otherwise than sums of integers: values halfway may differ by one step.
    distance = (got.int_repr().int() - expected.int_repr().int()).abs()
    assert distance.max() <= 1 and (distance > 0).float().mean() < 0.01


@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (3, 5, 7), (6, 64, 64), (50, 33, 130)])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("centred", [False, True])
def test_linear(m, k, n, relu, centred):
    x, w, b = quantized(m, k), weight_of(n, k, centred=centred), facula.randn(n)
    run = ops.linear_relu if relu else ops.linear
    got = run(x, ops.linear_prepack(w, b), 0.1, 100)
    values = F.linear(x.dequantize(), w.dequantize(), b)
    check_near(got, values.relu() if relu else values, 0.1, 100)


def test_linear_dynamic_quantizes_its_input():
    x, w, b = facula.randn(4, 20), weight_of(9, 20), facula.randn(9)
    got = ops.linear_dynamic(x, ops.linear_prepack(w, b))
    rounded = facula.quantize_per_tensor_dynamic(x, facula.quint8, False).dequantize()
    assert facula.allclose(got, F.linear(rounded, w.dequantize(), b), atol=1e-4)


CONVOLUTIONS = [
    (1, (2, 3, 9), (4, 3, 3), 1, 1, 1, 1),
    (2, (2, 3, 8, 7), (5, 3, 3, 2), 2, 1, 1, 1),
    (2, (1, 4, 8, 8), (6, 2, 3, 3), 1, 2, 2, 2),
    (2, (2, 16, 5, 5), (8, 16, 1, 1), 1, 0, 1, 1),
    (2, (1, 6, 6, 6), (6, 1, 3, 3), 1, 1, 1, 6),
    (3, (1, 2, 4, 5, 6), (3, 2, 2, 3, 2), 1, 1, 1, 1),
]


@pytest.mark.parametrize("case", range(len(CONVOLUTIONS)))
def test_convolution(case):
    dims, in_size, w_size, stride, padding, dilation, groups = CONVOLUTIONS[case]
    x, w, b = quantized(*in_size), weight_of(*w_size), facula.randn(w_size[0])
    geometry = ([stride] * dims, [padding] * dims, [dilation] * dims, groups)
    packed = getattr(ops, f"conv{dims}d_prepack")(w, b, *geometry)
    got = getattr(ops, f"conv{dims}d")(x, packed, 0.1, 100)
    run = getattr(F, f"conv{dims}d")
    check_near(got, run(x.dequantize(), w.dequantize(), b, *geometry), 0.1, 100)


def test_arithmetic():
    a, b = quantized(3, 4), quantized(3, 4, scale=0.02)
    x, y = a.dequantize(), b.dequantize()
    check_near(ops.add(a, b, 0.1, 100), x + y, 0.1, 100)
    check_near(ops.mul_relu(a, b, 0.1, 100), (x * y).relu(), 0.1, 100)
    check_near(ops.cat([a, b], 0, 0.1, 100), facula.cat([x, y]), 0.1, 100)
    assert facula.allclose(ops.mul_scalar(a, 2.0).dequantize(), x * 2)
    assert facula.allclose(ops.mul_scalar(a, -2.0).dequantize(), x * -2, atol=1e-5)


def integers(dtype, scale, zero_point, shape=(256, 3)):
    """A quantized tensor that has every integer of a byte."""
    n = facula.arange(shape[0] * shape[1]).reshape(shape) % 256
    low = -128 if dtype is facula.qint8 else 0
    plain = {facula.qint8: facula.int8, facula.quint8: facula.uint8, facula.qint32: facula.int32}
    return facula._make_per_tensor_quantized_tensor((n + low).to(plain[dtype]), scale, zero_point)


@pytest.mark.parametrize("dtype", (facula.qint8, facula.quint8, facula.qint32))
@pytest.mark.parametrize("zero_point", (0, 100))
def test_arithmetic_is_that_of_floats_quantized_anew(dtype, zero_point):
    a, b = integers(dtype, 0.05, zero_point), integers(dtype, 0.02, 7).flip(0)
    x, y = a.dequantize(), b.dequantize()
    for name, values in {
        "add": x + y,
        "mul": x * y,
        "add_relu": (x + y).relu(),
        "mul_relu": (x * y).relu(),
    }.items():
        expected = facula.quantize_per_tensor(values, 0.06, 90, dtype)
        for left, right in ((a, b), (a.t(), b.t()), (a[:, ::2], b[:, ::2])):
            got = getattr(ops, name)(left, right, 0.06, 90)
            wanted = expected if left.shape == a.shape else expected[:, ::2]
            wanted = expected.t() if left.shape == a.t().shape else wanted
            assert facula.equal(got.int_repr(), wanted.int_repr())
        out = facula.quantize_per_tensor(facula.zeros(a.shape), 0.06, 90, dtype)
        getattr(ops, name)(a, b, out=out)
        assert facula.equal(out.int_repr(), expected.int_repr())
    assert ops.add(a[:0], b[:0], 0.1, 3).shape == (0, 3)


@pytest.mark.parametrize("dtype", (facula.qint8, facula.quint8, facula.qint32))
def test_relu_leaves_integers_from_the_zero_point_on(dtype):
    a = integers(dtype, 0.05, 100)
    expected = a.int_repr().clamp(min=100)
    for q in (a, a.t(), a[::2, 1:]):
        want = expected if q is a else expected.t() if q.shape == (3, 256) else expected[::2, 1:]
        assert facula.equal(q.relu().int_repr(), want) and q.relu().q_zero_point() == 100
    a.relu_()
    assert facula.equal(a.int_repr(), expected)


def test_relu_of_channels():
    x = facula.linspace(-1, 1, 12).reshape(3, 4)
    scales, zeros = facula.tensor([0.01, 0.02, 0.03]), facula.tensor([0, 5, -5])
    q = facula.quantize_per_channel(x, scales, zeros, 0, facula.qint8)
    with pytest.raises(RuntimeError, match="uniformly"):
        q.relu()


def test_wrong_inputs_raise():
    with pytest.raises(RuntimeError, match="zero_point"):
        ops.add(quantized(2, 4), quantized(2, 4), 0.1, 1000)
    packed = ops.linear_prepack(weight_of(3, 4))
    with pytest.raises(RuntimeError, match="last dimension must be 4"):
        ops.linear(quantized(2, 5), packed, 0.1, 0)
    with pytest.raises(RuntimeError, match="quint8"):
        ops.linear(facula.ones(2, 4), packed, 0.1, 0)
    with pytest.raises(RuntimeError, match="qint8"):
        ops.linear_prepack(facula.ones(2, 4))
    with pytest.raises(RuntimeError, match="packed for"):
        facula.ops.aten._quantized_linear(quantized(2, 9), *packed.parts, 9, 0.1, 0, False)
    with pytest.raises(AttributeError):
        ops.no_such_operator  # noqa: B018
