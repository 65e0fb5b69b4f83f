"""Samples of src/ops/conv/convolution.cpp."""

import numpy as np
from samples.common import Error, Op, Sample, T


def _conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    wide = np.promote_types(x.dtype, np.float64)
    pads = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
    x, weight = np.pad(x.astype(wide), pads), weight.astype(wide)
    reach = [dilation * (k - 1) + 1 for k in weight.shape[2:]]
    view = np.lib.stride_tricks.sliding_window_view(x, reach, axis=(2, 3))
    view = view[:, :, ::stride, ::stride, ::dilation, ::dilation]
    parts = [
        np.einsum("nchwij,ocij->nohw", v, w)
        for v, w in zip(np.split(view, groups, 1), np.split(weight, groups, 0), strict=True)
    ]
    y = np.concatenate(parts, 1)
    return y if bias is None else y + bias[:, None, None]


IMAGE, LAST = T(2, 4, 6, 7), T(2, 4, 6, 7, layout="channels_last")
WEIGHT, GROUPED, BIAS = T(6, 4, 3, 2), T(6, 2, 3, 3), T(6)

OPS = [
    Op(
        "conv1d",
        [
            Sample(T(2, 4, 9), T(6, 4, 3), BIAS),
            Sample(T(2, 4, 9), T(6, 4, 3), None, 2, 1, 2),
            Sample(T(4, 9), T(6, 2, 3), BIAS, groups=2),
            Sample(T(2, 4, 9), T(4, 1, 1), groups=4),
            Sample(T(2, 4, 9), T(6, 4, 4), padding="same"),
        ],
        dtypes="float complex int64",
        tolerance=4,
    ),
    Op(
        "conv2d",
        [
            Sample(IMAGE, WEIGHT, BIAS),
            Sample(LAST, WEIGHT, BIAS, 2, 1),
            Sample(IMAGE, GROUPED, BIAS, 1, 2, 2, 2),
            Sample(IMAGE, T(6, 4, 1, 1), BIAS),
            Sample(T(0, 4, 6, 7), WEIGHT, BIAS),
            Sample(LAST, T(4, 1, 3, 3), T(4), 1, 1, 1, 4),
        ],
        reference=_conv2d,
        dtypes="float complex",
        tolerance=4,
        errors=[
            Error(RuntimeError, "channels", Sample(IMAGE, T(6, 3, 3, 3))),
            Error(RuntimeError, "Kernel size", Sample(IMAGE, T(6, 4, 9, 9))),
            Error(RuntimeError, "greater than zero", Sample(IMAGE, T(6, 4, 0, 1))),
            Error(RuntimeError, "size zero", Sample(T(1, 4, 0, 3), T(6, 4, 1, 1), padding=2)),
            Error(RuntimeError, "bias", Sample(IMAGE, WEIGHT, T(5))),
            Error(RuntimeError, "stride", Sample(IMAGE, WEIGHT, BIAS, 0)),
            Error(RuntimeError, "groups", Sample(IMAGE, WEIGHT, BIAS, groups=5)),
            Error(RuntimeError, "type", Sample(IMAGE, T(6, 4, 3, 2, dtype="int64"))),
        ],
    ),
    Op(
        "conv2d",
        [
            Sample(T(4, 6, 7), WEIGHT),
            Sample(IMAGE, WEIGHT, BIAS, padding="same"),
            Sample(IMAGE, WEIGHT, BIAS, padding="valid", dilation=(1, 2)),
            Sample(IMAGE, WEIGHT, BIAS, (2, 1), (0, 1)),
            Sample(T(2, 4, 6, 7, layout="transposed"), WEIGHT, BIAS),
        ],
        dtypes="float int64",
        tolerance=4,
    ),
    Op(
        "conv3d",
        [
            Sample(T(2, 2, 4, 5, 4), T(3, 2, 2, 3, 2), T(3)),
            Sample(T(2, 2, 4, 5, 4, layout="channels_last"), T(4, 1, 2, 2, 2), None, 2, 1, 1, 2),
        ],
        dtypes="float",
        tolerance=4,
    ),
    Op(
        "conv_transpose1d",
        [Sample(T(2, 4, 5), T(4, 3, 3), T(3)), Sample(T(2, 4, 5), T(4, 3, 3), None, 3, 1, 2, 2, 2)],
        dtypes="float complex",
        tolerance=4,
    ),
    Op(
        "conv_transpose2d",
        [
            Sample(IMAGE, T(4, 3, 3, 2), T(3)),
            Sample(LAST, T(4, 3, 3, 2), T(3), 2, 1, 1),
            Sample(IMAGE, T(4, 2, 3, 3), T(4), 2, 1, 0, 2, 2),
        ],
        dtypes="float complex",
        tolerance=4,
        errors=[
            Error(
                RuntimeError,
                "output_padding must be smaller than",
                Sample(IMAGE, T(4, 3, 3, 2), T(3), 1, 0, 1),
            ),
            Error(RuntimeError, "greater than zero", Sample(IMAGE, T(4, 3, 0, 2))),
        ],
    ),
    Op(
        "conv_transpose3d",
        [Sample(T(1, 2, 3, 3, 3), T(2, 3, 2, 2, 2), T(3), 2)],
        dtypes="float",
        tolerance=4,
    ),
    Op("conv_tbc", [Sample(T(6, 2, 3), T(2, 3, 4), T(4), 1)], dtypes="full"),
]
