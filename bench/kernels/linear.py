"""Matrix products, convolution, attention."""

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


CONVOLUTIONS = {
    "3x3 64": ((8, 64, 28, 28), (64, 64, 3, 3), {"padding": 1}),
    "3x3 3 to 32": ((16, 3, 32, 32), (32, 3, 3, 3), {"padding": 1}),
    "3x3 stride 2": ((8, 64, 28, 28), (128, 64, 3, 3), {"padding": 1, "stride": 2}),
    "3x3 256, 8x8": ((8, 256, 8, 8), (256, 256, 3, 3), {"padding": 1}),
    "1x1 256 to 64": ((8, 256, 14, 14), (64, 256, 1, 1), {}),
    "1x1 stride 2": ((8, 64, 28, 28), (128, 64, 1, 1), {"stride": 2}),
    "7x7 stride 2": ((2, 3, 112, 112), (64, 3, 7, 7), {"padding": 3, "stride": 2}),
    "depthwise 3x3": ((8, 128, 28, 28), (128, 1, 3, 3), {"padding": 1, "groups": 128}),
    "groups 4": ((8, 64, 28, 28), (64, 16, 3, 3), {"padding": 1, "groups": 4}),
    "dilated": ((4, 32, 28, 28), (32, 32, 3, 3), {"padding": 2, "dilation": 2}),
    "5x5 batch 1": ((1, 32, 32, 32), (32, 32, 5, 5), {"padding": 2}),
}


def convolution():
    table = Table("convolution")
    for label, (image, weight, options) in CONVOLUTIONS.items():
        for layout in ("", "channels_last"):
            inputs = [In(image, layout=layout), In(weight, layout=layout, low=-0.2, high=0.2)]

            def apply(m, x, w, options=options):
                return m.nn.functional.conv2d(x, w, **options)

            note = "cl" if layout else ""
            rare = label in ("dilated", "groups 4", "5x5 batch 1", "1x1 stride 2")
            table.add(label, inputs, apply, note=note, full=rare and bool(layout))
            table.backward(label, inputs, apply, note=note, full=rare)
    bf16 = [In((8, 64, 28, 28), "bfloat16"), In((64, 64, 3, 3), "bfloat16", low=-0.2, high=0.2)]
    table.add("3x3 64 bf16", bf16, lambda m, x, w: m.nn.functional.conv2d(x, w, padding=1), note="")
    table.add("conv1d 64", [In((16, 64, 256)), In((64, 64, 3))],
              lambda m, x, w: m.nn.functional.conv1d(x, w, padding=1), note="")  # fmt: skip
    table.add("conv3d 16", [In((2, 16, 8, 28, 28)), In((16, 16, 3, 3, 3))],
              lambda m, x, w: m.nn.functional.conv3d(x, w, padding=1), note="")  # fmt: skip
    table.add("transposed 4x4", [In((8, 64, 14, 14)), In((64, 32, 4, 4))],
              lambda m, x, w: m.nn.functional.conv_transpose2d(x, w, stride=2, padding=1),
              note="")  # fmt: skip
    return table.cases


def attention():
    table = Table("attention")

    def attend(m, q, k, v, **options):
        return m.nn.functional.scaled_dot_product_attention(q, k, v, **options)

    shapes = {
        "8x8x128x64": (8, 8, 128, 64),
        "2x8x512x64": (2, 8, 512, 64),
        "1x12x1Kx64": (1, 12, K, 64),
    }
    for label, shape in shapes.items():
        for causal in (False, True):
            word = "causal " if causal else ""
            options = {"is_causal": causal}
            table.add(f"{word}{label}", [In(shape)] * 3, note="",
                      function=lambda m, q, k, v, o=options: attend(m, q, k, v, **o))  # fmt: skip
        table.backward(f"causal {label}", [In(shape)] * 3, note="", full=shape[2] == K,
                       function=lambda m, q, k, v: attend(m, q, k, v, is_causal=True))  # fmt: skip
    table.add("bf16 8x8x128x64", [In((8, 8, 128, 64), "bfloat16")] * 3, attend, note="")
    table.add("one query 8x8x512x64", [In((8, 8, 1, 64)), *[In((8, 8, 512, 64))] * 2], attend,
              note="")  # fmt: skip
    table.add("masked 8x8x128x64", [*[In((8, 8, 128, 64))] * 3, In((128, 128))], note="",
              function=lambda m, q, k, v, b: attend(m, q, k, v, attn_mask=b))  # fmt: skip
    return table.cases
