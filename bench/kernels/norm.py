"""Normalisations."""

from bench.kernels.common import In, K, Table


def norms():
    table = Table("norms")

    def layer(m, x, w, b):
        return m.nn.functional.layer_norm(x, x.shape[-1:], w, b)

    def batch(m, x, w, b):
        return m.nn.functional.batch_norm(x, None, None, w, b, training=True)

    def evaluate(m, x, w, b):
        return m.nn.functional.batch_norm(x, w * 0, b.abs() + 1, w, b)

    for shape in ((1 * K, 768), (16 * K, 64)):
        inputs = [In(shape), In(shape[-1:]), In(shape[-1:])]
        table.add("layer_norm", inputs, layer)
        table.backward("layer_norm", inputs, layer)
    table.add("layer_norm", [In((1 * K, 768), "bfloat16"), *[In((768,), "bfloat16")] * 2], layer)
    table.add("rms_norm", [In((1 * K, 768)), In((768,))],
              lambda m, x, w: m.nn.functional.rms_norm(x, (768,), w))  # fmt: skip
    table.backward("rms_norm", [In((1 * K, 768)), In((768,))],
                   lambda m, x, w: m.nn.functional.rms_norm(x, (768,), w))  # fmt: skip
    for layout in ("", "channels_last"):
        inputs = [In((32, 64, 28, 28), layout=layout), In((64,)), In((64,))]
        table.add("batch_norm", inputs, batch)
        table.add("batch_norm eval", inputs, evaluate)
        table.backward("batch_norm", inputs, batch)
    table.add("batch_norm", [In((4 * K, 128)), In((128,)), In((128,))], batch)
    group = [In((16, 64, 28, 28)), In((64,)), In((64,))]
    table.add("group_norm", group, lambda m, x, w, b: m.nn.functional.group_norm(x, 8, w, b))
    table.backward("group_norm", group, lambda m, x, w, b: m.nn.functional.group_norm(x, 8, w, b))
    return table.cases
