"""Pooling."""

from bench.kernels.common import In, Table


def pooling():
    table = Table("pooling")
    for layout in ("", "channels_last"):
        inputs = [In((16, 64, 28, 28), layout=layout)]
        for name in ("max_pool2d", "avg_pool2d"):

            def apply(m, x, name=name):
                return getattr(m.nn.functional, name)(x, 2)

            def overlapping(m, x, name=name):
                return getattr(m.nn.functional, name)(x, 3, 2, 1)

            table.add(f"{name} 2", inputs, apply)
            table.add(f"{name} 3/2", inputs, overlapping)
            table.backward(f"{name} 2", inputs, apply)
        table.add("adaptive_avg_pool2d 1", inputs,
                  lambda m, x: m.nn.functional.adaptive_avg_pool2d(x, 1))  # fmt: skip
    table.add("max_pool1d", [In((16, 64, 256))], lambda m, x: m.nn.functional.max_pool1d(x, 2))
    table.add("unfold", [In((8, 32, 28, 28))], lambda m, x: m.nn.functional.unfold(x, 3))
    return table.cases
