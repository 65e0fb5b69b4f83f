"""Samples of src/ops/resample/upsample.cpp."""

import numpy as np
from samples.common import Error, Op, Sample, T


def _nearest(x, size):
    rows, columns = ((np.arange(s) * n // s) for n, s in zip(x.shape[-2:], size, strict=True))
    return x[..., rows[:, None], columns]


def _matrix(n, size, align):
    """Weights (size, n) of linear interpolation along one axis."""
    at = (
        np.arange(size) * (n - 1) / max(size - 1, 1)
        if align
        else np.maximum((np.arange(size) + 0.5) * n / size - 0.5, 0)
    )
    first = np.minimum(at.astype(int), n - 1)
    weights = np.zeros((size, n))
    np.add.at(weights, (np.arange(size), first), 1 - (at - first))
    np.add.at(weights, (np.arange(size), np.minimum(first + 1, n - 1)), at - first)
    return weights


def _bilinear(x, size, align):
    down, across = (_matrix(n, s, align) for n, s in zip(x.shape[-2:], size, strict=True))
    return down @ np.asarray(x, np.float64) @ across.T


LINE, IMAGE, VOLUME = T(2, 3, 7), T(1, 2, 5, 6), T(1, 1, 3, 4, 5)
LAST = T(2, 3, 5, 6, layout="channels_last")


def _resized(mode, t, **options):
    space = len(t.shape) - 2
    return [
        Sample(t, size=(9, 8, 7)[:space], mode=mode, **options),
        Sample(t, size=(3, 2, 4)[:space], mode=mode, **options),
        Sample(t, scale_factor=1.7, mode=mode, **options),
        Sample(t, scale_factor=0.6, mode=mode, recompute_scale_factor=True, **options),
    ]


NAME = "nn.functional.interpolate"
OPS = [
    Op(
        "_C._nn.upsample_nearest2d",
        [Sample(IMAGE, [10, 12]), Sample(LAST, [3, 7])],
        reference=_nearest,
        dtypes="float uint8",
        errors=[
            Error(RuntimeError, "output_size", Sample(IMAGE, [3])),
            Error(RuntimeError, "input_size", Sample(LINE, [3, 3])),
            Error(RuntimeError, "sizes of input and output must be", Sample(IMAGE, [0, 3])),
            Error(NotImplementedError, "", Sample(T(1, 1, 2, 2, dtype="int32"), [3, 3])),
        ],
    ),
    Op(
        "_C._nn.upsample_bilinear2d",
        [
            Sample(IMAGE, [10, 4], False),
            Sample(LAST, [3, 7], True),
            Sample(IMAGE, [1, 1], True),
            Sample(T(2, 3, 5, 6, layout="transposed"), [7, 7], False),
        ],
        reference=_bilinear,
    ),
    Op(
        NAME,
        [
            *_resized("nearest", LINE),
            *_resized("nearest", IMAGE),
            *_resized("nearest", VOLUME),
            *_resized("nearest-exact", LINE),
            *_resized("nearest-exact", LAST),
            *_resized("nearest-exact", VOLUME),
        ],
        dtypes="float uint8",
    ),
    Op(
        NAME,
        [
            *_resized("linear", LINE),
            *_resized("linear", LINE, align_corners=True),
            *_resized("trilinear", VOLUME),
            *_resized("trilinear", VOLUME, align_corners=True),
            *_resized("trilinear", T(2, 3, 3, 4, 5, layout="channels_last")),
        ],
    ),
    Op(
        NAME,
        [
            *_resized("bilinear", IMAGE),
            *_resized("bilinear", LAST, align_corners=True),
            *_resized("bicubic", IMAGE),
            *_resized("bicubic", LAST),
            *_resized("bicubic", LAST, align_corners=True),
        ],
        dtypes="float",
    ),
    Op(
        NAME,
        [
            *_resized("bilinear", IMAGE, antialias=True),
            *_resized("bilinear", LAST, antialias=True, align_corners=True),
            *_resized("bicubic", LAST, antialias=True),
            *_resized("bicubic", IMAGE, antialias=True, align_corners=True),
        ],
        dtypes="full",
    ),
    Op(
        NAME,
        [
            Sample(T(2, 3, 9, 8, low=0, high=255), size=s, mode=m, align_corners=a, antialias=aa)
            for s in ((5, 20), (3, 3), (9, 8))
            for m in ("bilinear", "bicubic")
            for a in (False, True)
            for aa in (False, True)
        ],
        dtypes="uint8",
        grad=False,
    ),
]
