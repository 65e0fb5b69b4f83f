"""Reads and writes by index and by mask."""

from bench.kernels.common import In, K, M, Table


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
