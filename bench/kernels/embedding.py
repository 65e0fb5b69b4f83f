"""Rows of tables by number, and bags of them."""

from bench.kernels.common import In, K, Table


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
