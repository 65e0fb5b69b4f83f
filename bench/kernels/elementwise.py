"""Elementwise operators: arithmetic, transcendental functions, comparisons, layouts."""

from bench.kernels.common import In, K, M, Table

SIZES = (16 * K, 1 * M)
BINARY = ("add", "sub", "mul", "div", "maximum", "fmod", "remainder")
UNARY = ("neg", "abs", "sqrt", "rsqrt", "reciprocal", "floor", "round", "sign", "square")
TRANSCENDENTAL = (
    "exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "tanh", "sinh", "sigmoid",
    "erf", "erfc", "asin", "atan", "lgamma",
)  # fmt: skip
ACTIVATIONS = ("relu", "gelu", "silu", "softplus", "elu", "leaky_relu", "hardswish", "mish")
POSITIVE = ("sqrt", "rsqrt", "log", "log2", "log1p", "reciprocal", "lgamma")


def inputs_for(name, count, shape, dtype="float32"):
    """Inputs within the domain of an operator."""
    if dtype.startswith("int"):
        return [In(shape, dtype, low=1, high=100)] * count
    if name == "asin":
        return [In(shape, dtype, low=-1, high=1)] * count
    low = 0.1 if name in POSITIVE else -3
    return [In(shape, dtype, low=low, high=3)] * count


def call(name):
    return lambda m, *arguments: getattr(m, name)(*arguments)


def functional(name):
    return lambda m, x: getattr(m.nn.functional, name)(x)


def arithmetic():
    table = Table("arithmetic")
    for name, count in [(n, 2) for n in BINARY] + [(n, 1) for n in UNARY]:
        for size in SIZES:
            table.add(name, inputs_for(name, count, (size,)), call(name))
        for dtype in ("float64", "bfloat16", "int64"):
            if dtype == "int64" and name in ("sqrt", "rsqrt", "reciprocal", "floor", "round"):
                continue
            small = name in ("add", "mul", "div", "maximum", "neg")
            for size in SIZES:
                spec = inputs_for(name, count, (size,), dtype)
                table.add(name, spec, call(name), full=not small or size == M)
    for dtype in ("float32", "bfloat16", "int64"):
        spec = In((8 * M,), dtype, low=1, high=50)
        table.add("add", [spec] * 2, call("add"))
    ternary = {
        "addcmul": lambda m, x, y, z: m.addcmul(x, y, z, value=0.5),
        "lerp": lambda m, x, y, z: m.lerp(x, y, 0.3),
        "where": lambda m, x, y, z: m.where(x > 0, y, z),
        "clamp": lambda m, x, y, z: m.clamp(x, -1.0, 1.0),
        "add number": lambda m, x, y, z: x + 1.5,
        "number - x": lambda m, x, y, z: 1.5 - x,
        "pow 2": lambda m, x, y, z: x**2,
        "pow 3": lambda m, x, y, z: x**3,
        "add alpha": lambda m, x, y, z: m.add(x, y, alpha=0.5),
        "mul_": lambda m, x, y, z: x.mul_(1.0),
        "add_": lambda m, x, y, z: z.add_(y, alpha=1e-9),
    }
    for name, function in ternary.items():
        for size in SIZES:
            table.add(name, [In((size,))] * 3, function)
    return table.cases


def transcendental():
    table = Table("transcendental")
    for name in TRANSCENDENTAL:
        for size in SIZES:
            table.add(name, inputs_for(name, 1, (size,)), call(name), full=size == M)
        for dtype in ("float64", "bfloat16"):
            small = name in ("exp", "log", "tanh", "sigmoid", "sin", "erf")
            table.add(name, inputs_for(name, 1, (16 * K,), dtype), call(name), full=not small)
    for name in ACTIVATIONS:
        for dtype in ("float32", "bfloat16"):
            table.add(name, [In((16 * K,), dtype)], functional(name), full=dtype != "float32")
    for name in ("gelu", "silu", "relu"):
        table.backward(name, [In((64 * K,))], functional(name))
    for name in ("atan2", "pow", "hypot"):
        table.add(name, [In((16 * K,), low=0.1)] * 2, call(name))
    for name in ("exp", "tanh"):
        spec = In((8 * M,))
        table.add(name, [spec], call(name))
    return table.cases


def comparison():
    table = Table("comparison")
    for name in ("lt", "eq"):
        for dtype in ("float32", "float64", "bfloat16", "int64"):
            for size in SIZES:
                spec = [In((size,), dtype, low=0, high=5)] * 2
                table.add(name, spec, call(name), full=size == M and dtype != "float32")
    table.add("gt number", [In((1 * M,))], lambda m, x: x > 0.5)
    for name in ("isnan", "isfinite", "logical_not", "signbit"):
        table.add(name, [In((256 * K,))], call(name))
    for name in ("logical_and", "bitwise_or"):
        table.add(name, [In((1 * M,), "bool")] * 2, call(name))
    table.add("bitwise_and", [In((256 * K,), "int64", low=0, high=99)] * 2, call("bitwise_and"))
    table.add(
        "bitwise_left_shift",
        [In((256 * K,), "int64", low=0, high=9)] * 2,
        call("bitwise_left_shift"),
    )
    table.add(
        "masked_fill", [In((1 * M,)), In((1 * M,), "bool")], lambda m, x, b: x.masked_fill(b, 0)
    )
    return table.cases


def layouts():
    """The same loops over memory that is not contiguous, or broadcast."""
    table = Table("layouts")

    def add(m, x, y):
        return x + y

    square = (1 * K, 1 * K)
    image = (16, 64, 32, 32)
    pairs = {
        "add, transposed both": (In(square, layout="transposed"),) * 2,
        "add, one transposed": (In(square), In(square, layout="transposed")),
        "add, row": (In(square), In((1 * K,))),
        "add, column": (In(square), In((1 * K, 1))),
        "add, row x column": (In((1 * K, 1)), In((1, 1 * K))),
        "add, channels last": (In(image, layout="channels_last"),) * 2,
        "add, mixed layouts": (In(image), In(image, layout="channels_last")),
        "add, channel bias": (In(image), In((64, 1, 1))),
        "add, channel bias channels last": (In(image, layout="channels_last"), In((64, 1, 1))),
        "add, strided": (In(square, layout="strided"),) * 2,
        "add, inner dim of 3": (In((256 * K, 3)), In((3,))),
        "add, inner column of 3": (In((256 * K, 3)), In((256 * K, 1))),
        "add, small middle": (In((256, 8, 256)), In((256, 1, 256))),
        "add, bf16 to f32": (In(square, "bfloat16"), In(square)),
        "add, i64 to f32": (In(square, "int64"), In(square)),
        "add, bf16 row": (In(square, "bfloat16"), In((1 * K,), "bfloat16")),
        "add, i64 transposed": (In(square, "int64", "transposed"), In(square, "int64")),
    }
    for label, inputs in pairs.items():
        table.add(label, list(inputs), add, note="")
    table.add("exp, strided", [In((256 * K,), layout="strided")], call("exp"))
    table.add("exp, transposed", [In(square, layout="transposed")], call("exp"))
    table.add("sigmoid, strided bf16", [In((64 * K,), "bfloat16", "strided")], call("sigmoid"))
    table.add("slice of rows", [In((1 * K, 1 * K))], lambda m, x: x[:, 7:900] * 2, note="")
    table.add("slice of columns", [In((64 * K, 16))], lambda m, x: x[:, :4] * 2, note="")
    table.add("lt, row", [In(square), In((1 * K,))], call("lt"))
    table.add("where, broadcast", [In(square, "bool"), In((1 * K,)), In((1 * K, 1))], call("where"))
    return table.cases
