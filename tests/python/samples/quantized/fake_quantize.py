"""Samples of src/ops/quantized/fake_quantize.cpp: rounding to a grid, and its derivatives."""

from samples.common import Sample, T, aten

X = T(3, 4)
SCALE, ZERO = T(1, dtype="float32", low=0.1, high=0.2, grad=False), T(1, dtype="int32", low=0)
SCALES = T(3, dtype="float32", low=0.1, high=0.2, grad=False)
ZEROS = T(3, dtype="int32", low=0, high=3)
OFFSETS = T(3, dtype="float32", low=0, high=3, grad=False)
RANGE = -8, 7
ONE = T(1, dtype="int64", low=1, high=1)
LEARNABLE = {
    "_fake_quantize_learnable_per_tensor_affine": (
        T(1, low=0.1, high=0.2, grad=False),
        T(1, low=0, high=2, grad=False),
    ),
    "_fake_quantize_learnable_per_channel_affine": (
        T(3, low=0.1, high=0.2, grad=False),
        T(3, low=0, high=2, grad=False),
        0,
    ),
}


def observed(channels):
    """Both switches on, and the ranges, scales and zero points of so many channels.

    PyTorch reads them without strides; "transposed", one dimension is contiguous in all layouts.
    """
    return (
        ONE,
        ONE,
        T(channels, low=-1, high=-1, grad=False, layout="transposed"),
        T(channels, low=1, high=1, grad=False, layout="transposed"),
        T(channels, low=0.1, high=0.1, grad=False, layout="transposed"),
        T(channels, dtype="int32", low=0, high=0, layout="transposed"),
    )


MASK = T(3, 4, dtype="bool")

OPS = [
    aten(
        "fake_quantize_per_tensor_affine", [Sample(X, 0.1, 1, *RANGE)], dtypes="float32", grad=False
    ),
    aten(
        "fake_quantize_per_tensor_affine",
        [Sample(X, SCALE, ZERO, *RANGE)],
        dtypes="float32",
        grad=False,
    ),
    aten(
        "fake_quantize_per_channel_affine",
        [Sample(X, SCALES, ZEROS, 0, *RANGE), Sample(X, SCALES, OFFSETS, 0, *RANGE)],
        dtypes="float32",
        grad=False,
    ),
    aten(
        "fake_quantize_per_tensor_affine_cachemask",
        [Sample(X, 0.1, 1, *RANGE)],
        dtypes="float32",
        grad=False,
    ),
    aten(
        "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
        [Sample(X, SCALE, ZERO, ONE, *RANGE)],
        dtypes="float32",
        grad=False,
    ),
    aten(
        "fake_quantize_per_channel_affine_cachemask",
        [Sample(X, SCALES, ZEROS, 0, *RANGE)],
        dtypes="float32",
        grad=False,
    ),
    *[
        aten(name, [Sample(X, *steps, *RANGE, 0.5)], dtypes="float32", grad=False)
        for name, steps in LEARNABLE.items()
    ],
    *[
        aten(
            f"{name}_backward",
            [Sample(X, X, *steps, *RANGE)],
            dtypes="float32",
            grad=False,
            beyond_torch="it has no derivative",
        )
        for name, steps in LEARNABLE.items()
    ],
    *[
        aten(
            name,
            [
                Sample(X, *observed(1), 0.01, *RANGE, 0),
                Sample(X, *observed(3), 0.01, *RANGE, 0, True),
            ],
            dtypes="float32",
            grad=False,
        )
        for name in ("_fused_moving_avg_obs_fq_helper", "fused_moving_avg_obs_fake_quant")
    ],
    *[
        aten(
            f"fake_quantize_per_{kind}_affine_cachemask_backward",
            [Sample(X, MASK)],
            dtypes="float32",
        )
        for kind in ("tensor", "channel")
    ],
]
