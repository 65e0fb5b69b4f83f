"""Samples of src/ops/fft/transforms.cpp."""

import numpy as np
from samples.common import Error, Op, Sample, T

NORMS = ("backward", "ortho", "forward")


def _c2c(x, dim, normalization, forward):
    # NumPy's "forward" divides where it goes forward, and its "backward" where it goes back.
    norm = NORMS[normalization if forward else 2 - normalization]
    transform = np.fft.fftn if forward else np.fft.ifftn
    return transform(x, axes=dim, norm=norm) if dim else x


def _r2c(x, dim, normalization, onesided):
    if onesided:
        return np.fft.rfftn(x, axes=dim, norm=NORMS[normalization])
    return np.fft.fftn(x, axes=dim, norm=NORMS[normalization])


def _c2r(x, dim, normalization, last_dim_size):
    sizes = [x.shape[d] for d in dim[:-1]] + [last_dim_size]
    return np.fft.irfftn(x, s=sizes, axes=dim, norm=NORMS[2 - normalization])


OPS = [
    Op(
        "_fft_c2c",
        [
            Sample(T(6), [0], 0, True),
            Sample(T(3, 4), [1], 0, False),
            Sample(T(3, 4), [0], 1, True),
            Sample(T(2, 3, 4), [0, 2], 2, False),
            Sample(T(2, 3, 4), [2, 1, 0], 1, False),
            Sample(T(2, 3, 4, layout="transposed"), [1, 2], 2, True),
            Sample(T(5, 7, layout="strided"), [1], 0, True),
            Sample(T(3, 4), [], 0, True),
            Sample(T(0, 4), [1], 0, True),
            Sample(T(2, 1), [1], 0, True),
            Sample(T(19, 11), [0], 0, False),
        ],
        reference=_c2c,
        dtypes="complex",
        tolerance=5,
        errors=[
            Error(RuntimeError, "complex", Sample(T(3, dtype="float32"), [0], 0, True)),
        ],
    ),
    Op(
        "_fft_r2c",
        [
            Sample(T(6), [0], 0, True),
            Sample(T(7), [0], 0, True),
            Sample(T(3, 5), [1], 1, False),
            Sample(T(3, 4), [0], 2, False),
            Sample(T(2, 3, 4), [0, 2], 0, True),
            Sample(T(2, 3, 5), [2, 1, 0], 1, True),
            Sample(T(2, 3, 4), [1, 2], 2, False),
            Sample(T(2, 3, 4, layout="transposed"), [1, 2], 0, True),
            Sample(T(5, 7, layout="strided"), [1], 0, True),
            Sample(T(0, 4), [1], 0, True),
            Sample(T(2, 1), [1], 0, True),
            Sample(T(19, 12), [1], 0, True),
        ],
        reference=_r2c,
        dtypes="full",
        tolerance=5,
        errors=[
            Error(TypeError, "floating", Sample(T(3, dtype="complex64"), [0], 0, True)),
            Error(RuntimeError, "at least one", Sample(T(3), [], 0, True)),
            Error(RuntimeError, "data points", Sample(T(3, 0), [1], 0, True)),
            Error(NotImplementedError, "Half", Sample(T(3, dtype="float16"), [0], 0, True)),
        ],
    ),
    Op(
        "_fft_c2r",
        [
            Sample(T(4), [0], 0, 6),
            Sample(T(4), [0], 2, 7),
            Sample(T(3, 4), [0], 1, 4),
            Sample(T(2, 3, 4), [0, 2], 0, 7),
            Sample(T(2, 3, 4), [2, 0, 1], 1, 5),
            Sample(T(2, 3, 4, layout="transposed"), [1, 2], 2, 6),
            Sample(T(0, 4), [1], 0, 6),
            Sample(T(2, 1), [1], 0, 1),
            Sample(T(19, 7), [1], 0, 12),
        ],
        reference=_c2r,
        dtypes="complex",
        tolerance=5,
        errors=[
            Error(RuntimeError, "complex", Sample(T(3, dtype="float32"), [0], 0, 4)),
        ],
    ),
]
