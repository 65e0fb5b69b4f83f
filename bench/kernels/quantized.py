"""Quantized tensors: rounding, arithmetic, int8 products beside those of float32."""

from bench.kernels.common import In, K, Table

PLANE, IMAGE, FILTERS = (
    In((256, 1 * K)),
    In((8, 64, 28, 28)),
    In((64, 64, 3, 3), low=-0.5, high=0.5),
)
WEIGHT = In((1 * K, 1 * K), low=-0.5, high=0.5)


def rounded(m, x):
    """8 bits for numbers from -2 to 2."""
    return m.quantize_per_tensor(x, 4 / 255, 128, m.quint8)


def weights(m, w):
    return m.quantize_per_tensor(w, 1 / 255, 0, m.qint8)


def scales(m, x):
    """Scales and zero points of the rows of a matrix."""
    return x, m.full((x.shape[0],), 4 / 255).double(), m.zeros(x.shape[0], dtype=m.int64)


def packed_linear(m, x, w):
    return rounded(m, x), m.ops.quantized.linear_prepack(weights(m, w), None)


def packed_conv(m, x, w):
    pack = m.ops.quantized.conv2d_prepack
    return rounded(m, x), pack(weights(m, w), None, [1, 1], [1, 1], [1, 1], 1)


CASES = {
    "quantize_per_tensor": ([PLANE], None, rounded),
    "quantize_per_channel": (
        [PLANE],
        scales,
        lambda m, x, s, z: m.quantize_per_channel(x, s, z, 0, m.qint8),
    ),
    "dequantize": ([PLANE], lambda m, x: [rounded(m, x)], lambda m, q: q.dequantize()),
    "relu": ([PLANE], lambda m, x: [rounded(m, x)], lambda m, q: q.relu()),
    "add": (
        [PLANE],
        lambda m, x: [rounded(m, x)],
        lambda m, q: m.ops.quantized.add(q, q, 8 / 255, 128),
    ),
    "linear": (
        [PLANE, WEIGHT],
        packed_linear,
        lambda m, q, w: m.ops.quantized.linear(q, w, 1.0, 128),
    ),
    "linear_dynamic": (
        [PLANE, WEIGHT],
        lambda m, x, w: (x, m.ops.quantized.linear_prepack(weights(m, w), None)),
        lambda m, x, w: m.ops.quantized.linear_dynamic(x, w),
    ),
    "linear of float32": (
        [PLANE, WEIGHT],
        None,
        lambda m, x, w: m.nn.functional.linear(x, w),
    ),
    "conv2d": (
        [IMAGE, FILTERS],
        packed_conv,
        lambda m, q, w: m.ops.quantized.conv2d(q, w, 1.0, 128),
    ),
    "conv2d of float32": (
        [IMAGE, FILTERS],
        None,
        lambda m, x, w: m.nn.functional.conv2d(x, w, padding=1),
    ),
    "max_pool2d": (
        [IMAGE],
        lambda m, x: [rounded(m, x)],
        lambda m, q: m.nn.functional.max_pool2d(q, 2),
    ),
}


def fake_quantize(m, x):
    return m.fake_quantize_per_tensor_affine(x, 4 / 255, 128, 0, 255)


def quantized():
    table = Table("quantized")
    for label, (inputs, prepare, function) in CASES.items():
        table.add(label, inputs, function, prepare=prepare)
    table.add("fake_quantize", [PLANE], fake_quantize)
    table.backward("fake_quantize", [PLANE], fake_quantize)
    return table.cases
