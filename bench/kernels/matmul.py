"""Matrix products."""

from bench.kernels.common import In, K, Table

MATMULS = (
    (16, 16, 16), (32, 32, 32), (64, 64, 64), (128, 128, 128), (256, 256, 256), (512, 512, 512),
    (1024, 1024, 1024), (1, 768, 3072), (8, 768, 3072), (128, 768, 3072), (2048, 64, 8),
    (4096, 3, 64), (31, 67, 129),
)  # fmt: skip


def matmul():
    table = Table("matmul")
    for dtype in ("float32", "float64", "bfloat16"):
        for m, k, n in MATMULS:
            some = (m, k, n) in ((64,) * 3, (256,) * 3, (512,) * 3, (8, 768, 3072))
            bound = {"low": -1, "high": 1}
            table.add(
                "mm",
                [In((m, k), dtype, **bound), In((k, n), dtype, **bound)],
                lambda module, a, b: a @ b,
                note=f"{m}x{k}x{n}" + ("" if dtype == "float32" else " " + dtype),
                full=dtype != "float32" and not some,
            )
    for batch, m, k, n in (
        (96, 128, 64, 128),
        (512, 16, 16, 16),
        (8, 256, 256, 256),
        (4096, 3, 3, 3),
    ):
        table.add("bmm", [In((batch, m, k)), In((batch, k, n))], lambda module, a, b: a @ b,
                  note=f"{batch}x({m}x{k}x{n})")  # fmt: skip
    table.add("bmm bf16", [In((96, 128, 64), "bfloat16"), In((96, 64, 128), "bfloat16")],
              lambda module, a, b: a @ b)  # fmt: skip
    for shape, out in (((32, 512), 512), ((1, 1024), 1024), ((1024, 256), 1024), ((64, 64), 10)):
        weights = [In((out, shape[1])), In((out,))]
        table.add(
            "linear",
            [In(shape), *weights],
            lambda module, x, w, b: module.nn.functional.linear(x, w, b),
            note=f"{shape[0]}x{shape[1]}x{out}",
        )
    for m, k, n in ((32, 512, 512), (1024, 256, 1024), (4096, 16, 1024)):
        for dtype in ("float32", "bfloat16"):
            for name in ("relu", "gelu"):
                table.add(
                    f"linear + {name} fused",
                    [In((n,), dtype), In((m, k), dtype), In((n, k), dtype, low=-0.1, high=0.1)],
                    lambda module, b, x, w, gelu=name == "gelu": module._addmm_activation(
                        b, x, w.t(), use_gelu=gelu
                    ),
                    note=f"{m}x{k}x{n}" + ("" if dtype == "float32" else " " + dtype),
                    full=dtype != "float32" and m != 1024,
                )
    table.backward("linear", [In((256, 512)), In((512, 512)), In((512,))],
                   lambda module, x, w, b: module.nn.functional.linear(x, w, b))  # fmt: skip
    table.add("mm transposed", [In((256, 256)), In((256, 256), layout="transposed")],
              lambda module, a, b: a @ b)  # fmt: skip
    table.add("mv", [In((1 * K, 1 * K)), In((1 * K,))], lambda module, a, x: a @ x)
    table.add("mv transposed", [In((1 * K, 1 * K)), In((1 * K,))], lambda module, a, x: a.t() @ x)
    table.add("dot", [In((64 * K,))] * 2, lambda module, x, y: module.dot(x, y))
    table.add("outer", [In((1 * K,))] * 2, lambda module, x, y: module.outer(x, y))
    table.add("addmm", [In((256, 256))] * 3, lambda module, c, a, b: module.addmm(c, a, b))
    table.add("mm int64", [In((64, 64), "int64")] * 2, lambda module, a, b: a @ b)
    table.add("einsum bhqd,bhkd", [In((8, 8, 64, 32))] * 2,
              lambda module, a, b: module.einsum("bhqd,bhkd->bhqk", a, b))  # fmt: skip
    table.add("cdist", [In((512, 16)), In((512, 16))], lambda module, a, b: module.cdist(a, b))
    return table.cases
