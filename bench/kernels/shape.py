"""Copies between layouts and dtypes, joining, splitting, padding."""

from bench.kernels.common import In, K, M, Table


def copies():
    table = Table("copies")
    image = (16, 64, 56, 56)
    for dtype in ("float32", "bfloat16", "int64", "uint8"):
        spec = In((4 * M,), dtype, low=0)
        table.add("clone", [spec], lambda m, x: x.clone())
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
