"""Samples of src/ops/pool/pool.cpp."""

import numpy as np
from samples.common import Error, Op, Sample, T


def _windows(x, kernel, stride, padding, dilation, fill):
    """The windows of a 4-d array, as an array (n, c, oh, ow, kh, kw)."""
    pads = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
    x = np.pad(np.asarray(x, np.float64), pads, constant_values=fill)
    reach = dilation * (kernel - 1) + 1
    view = np.lib.stride_tricks.sliding_window_view(x, (reach, reach), axis=(2, 3))
    return view[:, :, ::stride, ::stride, ::dilation, ::dilation]


def _max_pool2d(x, kernel, stride=None, padding=0, dilation=1):
    return _windows(x, kernel, stride or kernel, padding, dilation, -np.inf).max((-1, -2))


def _avg_pool2d(x, kernel, stride=None, padding=0):
    return _windows(x, kernel, stride or kernel, padding, 1, 0).mean((-1, -2))


def _adaptive_parts(size, count):
    return [slice(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def _adaptive(reduce):
    def pool(x, size):
        rows, columns = (_adaptive_parts(n, s) for n, s in zip(x.shape[-2:], size, strict=True))
        x = np.asarray(x, np.float64)
        return np.stack(
            [np.stack([reduce(x[..., r, c], (-1, -2)) for c in columns], -1) for r in rows], -2
        )

    return pool


# Small enough for gradients by differences; BATCH and LAST are larger.
IMAGE, BATCH = T(1, 2, 5, 6, unique=True), T(2, 3, 7, 9, unique=True)
LAST = T(2, 3, 7, 9, unique=True, layout="channels_last")
VOLUME = T(1, 2, 3, 3, 3, unique=True)
LINE = T(2, 2, 11, unique=True)

OPS = [
    Op(
        "max_pool1d",
        [
            Sample(LINE, 3),
            Sample(LINE, 3, 2, 1),
            Sample(LINE, 2, 1, 1, 2, True),
            Sample(T(3, 11, unique=True, layout="strided"), [4], [3]),
            Sample(T(0, 3, 11), 2),
        ],
        dtypes="float",
        errors=[
            Error(RuntimeError, "kernel", Sample(T(2, 3, 5), 0)),
            Error(RuntimeError, "input must have 2 or 3 dimensions", Sample(T(5), 2)),
            Error(RuntimeError, "too small", Sample(T(2, 3, 5), 6)),
        ],
    ),
    Op(
        "max_pool2d",
        [
            Sample(IMAGE, 3),
            Sample(BATCH, 3, 2, 1),
            Sample(LAST, 3, 2, 1),
            Sample(IMAGE, 3, 1, 0, 2),
            Sample(T(0, 3, 5, 5), 2),
        ],
        reference=_max_pool2d,
        dtypes="float int",
    ),
    Op(
        "nn.functional.max_pool2d",
        [
            Sample(T(3, 7, 9, unique=True), (2, 3), (2, 1), (1, 0), ceil_mode=True),
            Sample(LAST, 2, 3, ceil_mode=True, return_indices=True),
            Sample(T(1, 2, 6, 5, unique=True, layout="transposed"), 3, 2, 1, return_indices=True),
        ],
        errors=[
            Error(RuntimeError, "half", Sample(IMAGE, 2, 2, 2)),
            Error(RuntimeError, "stride", Sample(IMAGE, 2, 0)),
            Error(RuntimeError, "dilation", Sample(IMAGE, 2, 2, 0, 0)),
            Error(RuntimeError, "single int", Sample(IMAGE, (2, 2, 2))),
            Error(RuntimeError, "input must be 3D or 4D, and only its", Sample(T(2, 2), 2)),
        ],
    ),
    Op(
        "nn.functional.max_pool3d",
        [
            Sample(VOLUME, 2),
            Sample(VOLUME, 3, 2, 1, return_indices=True),
            Sample(T(2, 2, 5, 6, 4, unique=True, layout="channels_last"), 2, 1, 1, ceil_mode=True),
            Sample(T(2, 5, 6, 4, unique=True), (1, 2, 3), dilation=(1, 2, 1)),
        ],
        dtypes="float int",
    ),
    Op(
        "nn.functional.avg_pool1d",
        [
            Sample(LINE, 3),
            Sample(LINE, 3, 2, 1),
            Sample(LINE, 4, 3, 2, True, False),
            Sample(T(3, 11, layout="transposed"), 2),
        ],
        dtypes="float int64",
    ),
    Op(
        "nn.functional.avg_pool2d",
        [Sample(IMAGE, 3), Sample(BATCH, 3, 2, 1), Sample(LAST, 3, 2, 1), Sample(IMAGE, 1)],
        reference=_avg_pool2d,
    ),
    Op(
        "nn.functional.avg_pool2d",
        [
            Sample(IMAGE, 3, 2, 1, True, False),
            Sample(LAST, (3, 2), 2, (1, 0), True),
            Sample(IMAGE, 2, divisor_override=3),
            Sample(T(3, 7, 9), 2),
            Sample(T(0, 3, 7, 9), 2),
        ],
        dtypes="float int64",
        errors=[
            Error(RuntimeError, "divisor", Sample(IMAGE, 2, divisor_override=0)),
            Error(RuntimeError, "half", Sample(IMAGE, 2, 2, 2)),
            Error(NotImplementedError, "avg_pool2d", Sample(T(1, 1, 4, 4, dtype="int32"), 2)),
        ],
    ),
    Op(
        "nn.functional.avg_pool3d",
        [
            Sample(VOLUME, 2),
            Sample(VOLUME, 3, 2, 1, True, False),
            Sample(T(2, 2, 5, 6, 4, unique=True, layout="channels_last"), 2, divisor_override=5),
            Sample(T(2, 5, 6, 4), (1, 2, 3)),
        ],
        dtypes="full int64",
    ),
    Op(
        "nn.functional.adaptive_avg_pool1d",
        [Sample(LINE, 4), Sample(LINE, 1), Sample(T(3, 5), 7), Sample(T(2, 3, 1), 2)],
    ),
    Op(
        "nn.functional.adaptive_avg_pool2d",
        [
            Sample(IMAGE, (3, 4)),
            Sample(LAST, (3, 4)),
            Sample(IMAGE, (1, 1)),
            Sample(LAST, (1, 1)),
            Sample(BATCH, (9, 2)),
            Sample(T(3, 5, 5), (2, 3)),
        ],
        reference=_adaptive(np.mean),
        errors=[
            Error(ValueError, "dimension", Sample(T(2, 2), (1, 2))),
            Error(RuntimeError, "non-zero size", Sample(T(2, 3, 0, 4), (2, 2))),
        ],
    ),
    Op(
        "nn.functional.adaptive_avg_pool3d",
        [
            Sample(VOLUME, (2, 3, 3)),
            Sample(VOLUME, 1),
            Sample(VOLUME, (None, 2, 1)),
            Sample(T(2, 2, 5, 6, 4, unique=True, layout="channels_last"), (2, 3, 3)),
        ],
    ),
    Op(
        "nn.functional.adaptive_max_pool1d",
        [Sample(LINE, 4), Sample(LINE, 1, True), Sample(T(3, 5, unique=True), 7)],
    ),
    Op(
        "nn.functional.adaptive_max_pool2d",
        [Sample(IMAGE, (3, 4)), Sample(LAST, (3, 4)), Sample(T(3, 5, 5, unique=True), (2, 3))],
        reference=_adaptive(np.max),
    ),
    Op(
        "nn.functional.adaptive_max_pool3d",
        [
            Sample(VOLUME, (2, 3, 3), True),
            Sample(VOLUME, 1),
            Sample(T(2, 2, 5, 6, 4, unique=True, layout="channels_last"), (2, 3, 3)),
        ],
    ),
    Op(
        "nn.functional.fractional_max_pool2d",
        [
            Sample(
                IMAGE,
                2,
                (4, 5),
                return_indices=True,
                _random_samples=T(1, 2, 2, low=0, high=0.99, grad=False),
            ),
            Sample(
                T(3, 7, 9, unique=True),
                (2, 3),
                (3, 4),
                _random_samples=T(1, 3, 2, low=0, high=0.99, grad=False),
            ),
            Sample(IMAGE, 2, (1, 5), _random_samples=T(1, 2, 2, low=0, high=0.99, grad=False)),
        ],
        dtypes="full",
    ),
    Op(
        "nn.functional.fractional_max_pool3d",
        [
            Sample(
                T(1, 1, 4, 4, 4, unique=True),
                2,
                (2, 2, 1),
                return_indices=True,
                _random_samples=T(1, 1, 3, low=0, high=0.99, grad=False),
            )
        ],
        dtypes="full",
    ),
    Op(
        "nn.functional.max_unpool2d",
        [
            Sample(
                T(1, 1, 2, 3),
                T(1, 1, 2, 3, dtype="int64", low=0, high=5, unique=True),
                2,
                output_size=(5, 7),
            ),
            Sample(T(1, 1, 2, 3), T(1, 1, 2, 3, dtype="int64", low=0, high=5, unique=True), 2),
        ],
        errors=[
            Error(
                RuntimeError,
                "index",
                Sample(T(1, 1, 1, 1), T(1, 1, 1, 1, dtype="int64", low=99, high=99), 2),
            )
        ],
    ),
    Op(
        "nn.functional.max_unpool3d",
        [Sample(T(1, 2, 2, 2, 2), T(1, 2, 2, 2, 2, dtype="int64", low=0, high=7, unique=True), 2)],
    ),
]
