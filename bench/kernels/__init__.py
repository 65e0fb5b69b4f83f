"""Kernels of every family, from sizes that fit in the first caches to memory-bound ones."""

from bench.kernels import elementwise, linear, memory, network, reductions

FAMILIES = (
    elementwise.arithmetic,
    elementwise.transcendental,
    elementwise.comparison,
    elementwise.layouts,
    reductions.reductions,
    reductions.cumulative,
    reductions.sorting,
    memory.copies,
    memory.indexing,
    memory.embedding,
    linear.matmul,
    linear.convolution,
    linear.attention,
    network.softmax,
    network.norms,
    network.pooling,
    network.losses,
    network.optimizers,
    network.random,
)

CASES = [case for family in FAMILIES for case in family()]
