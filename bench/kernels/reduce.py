"""Reductions, cumulative operators, softmax."""

from bench.kernels.common import In, K, M, Table

DIMS = {"all": ((1 * K, 1 * K), None), "inner": ((1 * K, 1 * K), 1), "outer": ((1 * K, 1 * K), 0)}


def reduce(name, dim):
    if dim is None:
        return lambda m, x: getattr(m, name)(x)
    return lambda m, x: getattr(m, name)(x, dim)


def reductions():
    table = Table("reductions")
    for name in ("sum", "mean", "amax", "argmax", "var", "logsumexp", "prod", "any", "max", "std"):
        for where, (shape, dim) in DIMS.items():
            if name == "logsumexp" and dim is None:
                continue
            spread = {"low": 0.99, "high": 1.01} if name == "prod" else {}
            table.add(f"{name} {where}", [In(shape, **spread)], reduce(name, dim))
    for dtype in ("float64", "bfloat16", "int64"):
        for name in ("sum", "amax"):
            for where, (shape, dim) in DIMS.items():
                spec = In(shape, dtype, low=0, high=9)
                table.add(f"{name} {where}", [spec], reduce(name, dim), full=name == "amax")
    table.add("sum small", [In((16 * K,))], reduce("sum", None))
    table.add("sum short rows", [In((64 * K, 16))], reduce("sum", 1))
    for width, dtype in ((40, "float32"), (16, "int64"), (40, "int64")):
        spec = In((64 * K, width), dtype, low=0, high=9)
        table.add("sum short rows", [spec], reduce("sum", 1), full=True)
    table.add("max short rows", [In((64 * K, 10))], reduce("argmax", 1))
    table.add("sum few columns", [In((256 * K, 3))], reduce("sum", 0))
    table.add("sum middle", [In((64, 128, 128))], reduce("sum", 1))
    table.add("sum of images", [In((32, 64, 28, 28))], reduce("sum", (0, 2, 3)))
    table.add(
        "sum of images",
        [In((32, 64, 28, 28), layout="channels_last")],
        reduce("sum", (0, 2, 3)),
    )
    table.add("mean of images", [In((32, 64, 28, 28))], reduce("mean", (2, 3)))
    table.add("sum inner", [In((1 * K, 1 * K), layout="transposed")], reduce("sum", 1))
    table.add("norm all", [In((1 * M,))], lambda m, x: m.linalg.vector_norm(x))
    table.add("norm inner", [In((1 * K, 1 * K))], lambda m, x: m.linalg.vector_norm(x, dim=1))
    table.add("count_nonzero", [In((1 * M,), "int64", low=0)], reduce("count_nonzero", None))
    table.add("all of bools", [In((1 * M,), "bool")], reduce("all", 0))
    table.add("sum of bools", [In((1 * M,), "bool")], reduce("sum", None))
    spec = In((8 * M,))
    table.add("sum all", [spec], reduce("sum", None))
    return table.cases


def cumulative():
    table = Table("cumulative")
    for name in ("cumsum", "cumprod", "logcumsumexp", "cummax"):
        for dim in (1, 0):
            where = "inner" if dim else "outer"
            spec = In((1 * K, 1 * K), low=0.99, high=1.01)
            full = name in ("logcumsumexp",) and dim == 0
            table.add(f"{name} {where}", [spec], reduce(name, dim), full=full)
    table.add("cumsum", [In((1 * M,), "int64")], reduce("cumsum", 0))
    table.add("cumsum", [In((1 * M,), "bfloat16", low=0, high=1e-4)], reduce("cumsum", 0))
    table.add("cumsum", [In((1 * M,), low=-1, high=1)], reduce("cumsum", 0), checked=False)
    table.add("diff", [In((1 * K, 1 * K))], lambda m, x: m.diff(x))
    return table.cases


def softmax():
    table = Table("softmax")
    for name in ("softmax", "log_softmax"):

        def apply(m, x, name=name, dim=-1):
            return getattr(m.nn.functional, name)(x, dim)

        for shape in ((1 * K, 64), (64, 10 * K), (4 * K, 10)):
            table.add(name, [In(shape)], apply)
        table.add(f"{name} dim 1", [In((64, 64, 256))], lambda m, x, f=apply: f(m, x, dim=1))
        table.add(name, [In((256, 1 * K), "bfloat16")], apply)
        table.backward(name, [In((256, 1 * K))], apply)
    table.add("softmax", [In((256, 1 * K), "float64")], apply)
    return table.cases
