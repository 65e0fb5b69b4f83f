"""Sorting, selecting by order, searching."""

from bench.kernels.common import In, K, M, Table


def sorting():
    table = Table("sorting")

    def sort(m, x):
        return m.sort(x, -1)[0]

    for dtype in ("float32", "int64", "bfloat16"):
        table.add("sort", [In((256 * K,), dtype, low=-1e5, high=1e5)], sort)
        table.add("sort rows", [In((1 * K, 128), dtype, low=-1e5, high=1e5)], sort)
    table.add("sort outer", [In((512, 256))], lambda m, x: m.sort(x, 0)[0])
    table.add("sort stable", [In((64 * K,))], lambda m, x: m.sort(x, stable=True)[0])
    table.add("argsort", [In((64 * K,))], lambda m, x: m.argsort(x), checked=False)
    for k, shape in ((1, (64, 10 * K)), (10, (64, 10 * K)), (100, (1 * M,)), (5, (1 * K, 100))):
        table.add(f"topk {k}", [In(shape)], lambda m, x, k=k: m.topk(x, k)[0])
    table.add("topk 50", [In((32, 50 * K), "bfloat16")], lambda m, x: m.topk(x, 50)[0])
    table.add("kthvalue", [In((64, 10 * K))], lambda m, x: m.kthvalue(x, 5000)[0])
    table.add("median", [In((64, 10 * K))], lambda m, x: m.median(x, 1)[0])
    table.add("median", [In((256 * K,))], lambda m, x: m.median(x))
    table.add("unique", [In((256 * K,), "int64", low=0, high=1000)], lambda m, x: m.unique(x))
    table.add("unique", [In((64 * K,))], lambda m, x: m.unique(x))
    table.add("bincount", [In((1 * M,), "int64", low=0, high=1000)], lambda m, x: m.bincount(x))
    table.add("histc", [In((1 * M,))], lambda m, x: m.histc(x, 100, -2.0, 2.0))
    table.add(
        "searchsorted",
        [In((1 * M,)), In((64 * K,))],
        lambda m, x, v: m.searchsorted(m.cumsum(x.abs()[:1024], 0), v * 500),
        note="1K, 64K",
    )
    table.add("bucketize", [In((1 * M,)), In((33,))], lambda m, x, b: m.bucketize(x, b.sort()[0]))
    return table.cases
