"""Sparse matrices of 1 % elements, and of 1 % blocks: products, sums, conversions."""

from bench.kernels.common import In, K, Table

SQUARE, TALL, LINE = In((1 * K, 1 * K)), In((1 * K, 64)), In((1 * K,))


def thinned(m, x):
    """A strided matrix in which about one element of a hundred is left."""
    return x * (x > 1.96)


def in_blocks(m, x):
    """A strided matrix in which about one block of 16 x 16 of a hundred is left."""
    kept = (x[::16, ::16] > 1.96).repeat_interleave(16, 0).repeat_interleave(16, 1)
    return x * kept


def repeated(m, x):
    """A sparse_coo matrix each of whose elements is there twice."""
    once = thinned(m, x).to_sparse()
    places, values = once.indices(), once.values()
    return m.sparse_coo_tensor(m.cat([places, places], 1), m.cat([values, values]), x.shape)


def coo(m, x, *others):
    return thinned(m, x).to_sparse(), *others


def csr(m, x, *others):
    return thinned(m, x).to_sparse_csr(), *others


# Label: (inputs, what is made of them before, the function).
CASES = {
    "coo @ dense": ([SQUARE, TALL], coo, lambda m, s, x: s @ x),
    "csr @ dense": ([SQUARE, TALL], csr, lambda m, s, x: s @ x),
    "csr @ vector": ([SQUARE, LINE], csr, lambda m, s, x: s @ x),
    "csr @ csr": ([SQUARE], csr, lambda m, s: s @ s),
    "bsr @ dense": (
        [SQUARE, TALL],
        lambda m, x, y: (in_blocks(m, x).to_sparse_bsr((16, 16)), y),
        lambda m, s, x: s @ x,
    ),
    "sampled_addmm": (
        [SQUARE, TALL, In((64, 1 * K))],
        csr,
        lambda m, s, x, y: m.sparse.sampled_addmm(s, x, y),
    ),
    "coo + coo": ([SQUARE], coo, lambda m, s: s + s),
    "coo * number": ([SQUARE], coo, lambda m, s: s * 2.5),
    "coalesce": ([SQUARE], lambda m, x: (repeated(m, x),), lambda m, s: s.clone().coalesce()),
    "sparse.sum": ([SQUARE], coo, lambda m, s: m.sparse.sum(s, 0)),
    "sparse.softmax": ([SQUARE], coo, lambda m, s: m.sparse.softmax(s, 1)),
    "to_sparse": ([SQUARE], lambda m, x: (thinned(m, x),), lambda m, x: x.to_sparse()),
    "to_sparse_csr": ([SQUARE], lambda m, x: (thinned(m, x),), lambda m, x: x.to_sparse_csr()),
    "coo to_dense": ([SQUARE], coo, lambda m, s: s.to_dense()),
    "csr to_dense": ([SQUARE], csr, lambda m, s: s.to_dense()),
}


def sparse():
    table = Table("sparse")
    for label, (inputs, prepare, function) in CASES.items():
        table.add(label, inputs, function, prepare=prepare)
    table.backward("coo @ dense", [TALL], weighted)
    return table.cases


KEPT = {}


def weighted(m, x):
    """The product with one sparse matrix for each module."""
    if m not in KEPT:
        places = m.arange(16 * K) % (1 * K)
        KEPT[m] = m.sparse_coo_tensor(
            m.stack([places, (places * 7) % (1 * K)]), m.ones(16 * K), (1 * K, 1 * K)
        ).coalesce()
    return m.sparse.mm(KEPT[m], x)
