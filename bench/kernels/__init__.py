"""Kernels of every family, from sizes that fit in the first caches to memory-bound ones."""

from bench.kernels import (
    attention,
    conv,
    elementwise,
    embedding,
    fft,
    index,
    loss,
    matmul,
    norm,
    optim,
    pool,
    random,
    reduce,
    resample,
    shape,
    sort,
    special,
)

FAMILIES = (
    elementwise.arithmetic,
    elementwise.transcendental,
    elementwise.comparison,
    elementwise.layouts,
    reduce.reductions,
    reduce.cumulative,
    sort.sorting,
    shape.copies,
    index.indexing,
    embedding.embedding,
    matmul.matmul,
    conv.convolution,
    attention.attention,
    reduce.softmax,
    norm.norms,
    pool.pooling,
    resample.resampling,
    loss.losses,
    optim.optimizers,
    random.random,
    fft.transforms,
    special.special,
)

CASES = [case for family in FAMILIES for case in family()]
