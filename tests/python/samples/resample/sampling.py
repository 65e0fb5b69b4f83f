"""Samples of src/ops/resample/sampling.cpp."""

from samples.common import Error, Op, Sample, T

IMAGE, VOLUME = T(2, 2, 3, 3), T(1, 1, 2, 3, 4)
POINTS = T(2, 2, 3, 2, low=-1.4, high=1.4)
POINTS3 = T(1, 2, 2, 3, 3, low=-1.4, high=1.4)
PADDINGS = ("zeros", "border", "reflection")

OPS = [
    Op(
        "nn.functional.grid_sample",
        [
            Sample(IMAGE, POINTS, mode, padding, align)
            for mode in ("bilinear", "bicubic", "nearest")
            for padding in PADDINGS
            for align in (False, True)
        ],
        dtypes="full",
    ),
    Op(
        "nn.functional.grid_sample",
        [
            Sample(VOLUME, POINTS3, mode, padding, align)
            for mode in ("bilinear", "bicubic", "nearest")
            for padding in PADDINGS
            for align in (False, True)
        ],
        dtypes="full",
    ),
    Op(
        "nn.functional.grid_sample",
        [
            Sample(
                IMAGE.with_layout("channels_last"),
                POINTS.with_layout("strided"),
                align_corners=False,
            ),
            Sample(T(0, 3, 5, 6), T(0, 4, 3, 2), align_corners=False),
            Sample(T(1, 2, 1, 1), T(1, 4, 3, 2), padding_mode="reflection", align_corners=True),
        ],
        dtypes="full",
        errors=[
            Error(RuntimeError, "batch", Sample(IMAGE, T(1, 4, 3, 2), align_corners=False)),
            Error(
                RuntimeError, "last dimension", Sample(IMAGE, T(2, 4, 3, 3), align_corners=False)
            ),
            Error(
                RuntimeError,
                "dtype",
                Sample(IMAGE, T(2, 4, 3, 2, dtype="float16"), align_corners=False),
            ),
        ],
    ),
    Op(
        "nn.functional.affine_grid",
        [
            Sample(T(2, 2, 3), [2, 3, 4, 5], align_corners=False),
            Sample(T(2, 2, 3), [2, 3, 4, 1], align_corners=True),
            Sample(T(2, 3, 4), [2, 1, 3, 4, 2], align_corners=False),
        ],
        dtypes="full",
        beyond_torch="a side of length one is not implemented for float16",
        errors=[
            Error((RuntimeError, ValueError), "", Sample(T(2, 2, 2), [2, 3, 4, 5])),
            Error((RuntimeError, ValueError), "", Sample(T(2, 2, 3), [2, 3, 0, 5])),
        ],
    ),
]
