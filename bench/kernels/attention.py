"""Scaled dot product attention."""

from bench.kernels.common import In, K, Table


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
    half = [In((1, 12, K, 64), "bfloat16")] * 3
    table.add("bf16 1x12x1Kx64", half, attend, note="")
    table.backward("bf16 1x12x1Kx64", half, attend, note="", full=True)
    table.add("one query 8x8x512x64", [In((8, 8, 1, 64)), *[In((8, 8, 512, 64))] * 2], attend,
              note="")  # fmt: skip
    table.add("masked 8x8x128x64", [*[In((8, 8, 128, 64))] * 3, In((128, 128))], note="",
              function=lambda m, q, k, v, b: attend(m, q, k, v, attn_mask=b))  # fmt: skip
    return table.cases
