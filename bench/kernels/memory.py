"""Operators that move elements: copies, cat, gather, scatter, indexing, embedding."""

from bench.kernels.common import In, K, M, Table, size_of


def copies():
    table = Table("copies")
    image = (16, 64, 56, 56)
    for dtype in ("float32", "bfloat16", "int64", "uint8"):
        spec = In((4 * M,), dtype, low=0)
        table.add("clone", [spec], lambda m, x: x.clone(), traffic=2 * size_of(spec))
        matrix = In((2 * K, 2 * K), dtype, low=0)
        table.add("transpose", [matrix], lambda m, x: x.t().contiguous())
    table.add("clone", [In((16 * K,))], lambda m, x: x.clone())
    table.add("transpose small", [In((64, 64))], lambda m, x: x.t().contiguous())
    table.add("transpose odd", [In((1001, 777))], lambda m, x: x.t().contiguous())
    table.add("batched transpose", [In((64, 128, 64))], lambda m, x: x.transpose(1, 2).contiguous())
    heads = In((8, 128, 12, 64))
    table.add("heads to front", [heads], lambda m, x: x.permute(0, 2, 1, 3).contiguous())
    table.add("reverse permute", [In((64, 64, 64))], lambda m, x: x.permute(2, 1, 0).contiguous())
    table.add(
        "to channels last",
        [In(image)],
        lambda m, x: x.contiguous(memory_format=m.channels_last),
    )
    table.add(
        "from channels last", [In(image, layout="channels_last")], lambda m, x: x.contiguous()
    )
    for source, target in (
        ("float32", "bfloat16"), ("bfloat16", "float32"), ("float32", "float64"),
        ("int64", "float32"), ("float32", "int64"), ("uint8", "float32"), ("float32", "float16"),
        ("bool", "float32"),
    ):  # fmt: skip
        table.add(
            f"to {target}",
            [In((1 * M,), source, low=0, high=100)],
            lambda m, x, target=target: x.to(getattr(m, target)),
        )
    table.add("fill_", [In((1 * M,))], lambda m, x: x.fill_(1.0))
    table.add("zeros", [In((1,))], lambda m, x: m.zeros(1024, 1024), note="1Kx1K")
    table.add("arange", [In((1,))], lambda m, x: m.arange(1 * M), note="1M i64")
    for dim in (0, 1):
        parts = [In((512, 512))] * 4
        table.add(f"cat dim {dim}", parts, lambda m, *xs, dim=dim: m.cat(xs, dim))
    table.add("cat short rows", [In((64 * K, 4))] * 3, lambda m, *xs: m.cat(xs, 1))
    table.add("cat channels", [In((16, 32, 28, 28))] * 2, lambda m, *xs: m.cat(xs, 1))
    table.add("stack inner", [In((256 * K,))] * 3, lambda m, *xs: m.stack(xs, -1))
    table.add("repeat", [In((256, 256))], lambda m, x: x.repeat(4, 4))
    table.add("repeat_interleave", [In((64 * K, 4))], lambda m, x: x.repeat_interleave(3, 0))
    table.add("flip", [In((1 * K, 1 * K))], lambda m, x: x.flip(1))
    table.add("flip rows", [In((1 * K, 1 * K))], lambda m, x: x.flip(0))
    table.add("roll", [In((1 * K, 1 * K))], lambda m, x: x.roll(100, 1))
    table.add("tril", [In((1 * K, 1 * K))], lambda m, x: x.tril())
    pad = In((16, 32, 28, 28))
    table.add("pad", [pad], lambda m, x: m.nn.functional.pad(x, (1, 1, 1, 1)))
    table.add("pad reflect", [pad], lambda m, x: m.nn.functional.pad(x, (2,) * 4, mode="reflect"))
    return table.cases


def indexing():
    table = Table("indexing")
    wide, rows = (32 * K, 64), In((16 * K,), "int64", low=0, high=32 * K)
    flat = In((1 * M,))
    many = In((256 * K,), "int64", low=0, high=1 * M)
    inner = In((4 * K, 64), "int64", low=0, high=64)
    table.add("index_select rows", [In(wide), rows], lambda m, x, i: x.index_select(0, i))
    table.add("index_select columns", [In((4 * K, 64)), In((32,), "int64", low=0, high=64)],
              lambda m, x, i: x.index_select(1, i))  # fmt: skip
    table.add("x[i] rows", [In(wide), rows], lambda m, x, i: x[i])
    table.add("x[i] bf16 rows", [In(wide, "bfloat16"), rows], lambda m, x, i: x[i])
    table.add("x[i] elements", [flat, many], lambda m, x, i: x[i])
    table.add("x[i, j]", [In((1 * K, 1 * K)), In((64 * K,), "int64", low=0, high=1 * K),
                          In((64 * K,), "int64", low=0, high=1 * K)],
              lambda m, x, i, j: x[i, j])  # fmt: skip
    table.add("x[mask]", [flat, In((1 * M,), "bool")], lambda m, x, b: x[b])
    table.add("x[mask] = v", [flat, In((1 * M,), "bool")],
              lambda m, x, b: x.masked_fill_(b, 1.0))  # fmt: skip
    table.add("masked_scatter", [flat, In((1 * M,), "bool"), flat],
              lambda m, x, b, y: x.masked_scatter(b, y))  # fmt: skip
    table.add("nonzero", [In((1 * M,), "bool")], lambda m, b: b.nonzero())
    table.add("nonzero 2d", [In((1 * K, 1 * K), "bool")], lambda m, b: b.nonzero())
    table.add("take", [flat, many], lambda m, x, i: x.take(i))
    table.add("gather inner", [In((4 * K, 64)), inner], lambda m, x, i: x.gather(1, i))
    table.add("gather outer", [In((64, 4 * K)), In((64, 4 * K), "int64", low=0, high=64)],
              lambda m, x, i: x.gather(0, i))  # fmt: skip
    table.add("scatter inner", [In((4 * K, 64)), inner], checked=False,
              function=lambda m, x, i: x.scatter(1, i, x))  # fmt: skip
    table.add("scatter number", [In((16 * K, 10)), In((16 * K, 1), "int64", low=0, high=10)],
              lambda m, x, i: x.scatter(1, i, 1.0))  # fmt: skip
    table.add("scatter_add inner", [In((4 * K, 64)), inner],
              lambda m, x, i: x.scatter_add(1, i, x))  # fmt: skip
    table.add("scatter_add 1d", [In((1 * K,)), In((256 * K,), "int64", low=0, high=1 * K),
                                 In((256 * K,), low=0)],
              lambda m, x, i, y: x.scatter_add(0, i, y))  # fmt: skip
    table.add("scatter_reduce amax", [In((4 * K, 64)), inner],
              lambda m, x, i: x.scatter_reduce(1, i, x, "amax"))  # fmt: skip
    table.add("index_add rows", [In((1 * K, 64)), In((16 * K,), "int64", low=0, high=1 * K),
                                 In((16 * K, 64))],
              lambda m, x, i, y: x.index_add(0, i, y))  # fmt: skip
    table.add("index_copy rows", [In((32 * K, 64)), In((16 * K, 64))],
              lambda m, x, y: x.index_copy(0, m.arange(16 * K), y))  # fmt: skip
    table.add("index_put", [flat, many, In((256 * K,))], checked=False,
              function=lambda m, x, i, y: x.index_put((i,), y))  # fmt: skip
    table.add("index_put accumulate", [flat, many, In((256 * K,))],
              lambda m, x, i, y: x.index_put((i,), y, accumulate=True))  # fmt: skip
    table.backward("x[i] rows", [In((4 * K, 64)), In((8 * K,), "int64", low=0, high=4 * K)],
                   lambda m, x, i: x[i])  # fmt: skip
    table.backward("gather", [In((4 * K, 64)), inner], lambda m, x, i: x.gather(1, i))
    return table.cases


def embedding():
    table = Table("embedding")
    tokens = In((64, 256), "int64", low=0, high=20000)

    def lookup(m, w, i):
        return m.nn.functional.embedding(i, w)

    def bag(mode):
        return lambda m, w, i: m.nn.functional.embedding_bag(i, w, mode=mode)

    for dtype in ("float32", "bfloat16"):
        table.add("embedding", [In((20000, 128), dtype), tokens], lookup)
    table.add("embedding narrow", [In((20000, 8)), tokens], lookup)
    table.backward("embedding", [In((20000, 128)), tokens], lookup)
    for mode in ("sum", "mean", "max"):
        bags = In((4 * K, 20), "int64", low=0, high=20000)
        table.add(f"embedding_bag {mode}", [In((20000, 32)), bags], bag(mode))
    bags = In((4 * K, 20), "int64", low=0, high=20000)
    table.backward("embedding_bag sum", [In((20000, 32)), bags], bag("sum"))
    table.add("one_hot", [In((16 * K,), "int64", low=0, high=100)],
              lambda m, i: m.nn.functional.one_hot(i, 100))  # fmt: skip
    return table.cases
