"""Samples of the operators that src/ops/norm is made of: results with statistics, and backward."""

from samples.common import Op, Sample, T, aten

STATISTICS = {"low": 0.5, "grad": False}
ROWS, WEIGHT = T(4, 6), T(6)
IMAGE, CHANNEL = T(2, 6, 4), T(6)
BATCH, MEAN, VAR = T(4, 3, 5), T(3, grad=False), T(3, **STATISTICS)
SCALE, SHIFT = T(3), T(3)
EPS, ALL = 1e-5, [True, True, True]
# PyTorch reads statistics without their strides, which the table changes in float32 alone.
# The derivative of a backward operator holds for statistics of its input alone, not for those that
# are made up here; only the cotangent is differentiated, in which it is linear.
FIXED = {"grad": False}


def aligned(name, samples, **options):
    """A row whose tolerance allows for sums of squares."""
    return Op(name, samples, tolerance=8, **options)


OPS = [
    aligned(
        "native_layer_norm",
        [
            Sample(ROWS, [6], WEIGHT, WEIGHT, EPS),
            Sample(T(2, 3, 4), [3, 4], T(3, 4), None, EPS),
            Sample(T(2, 3, 4), [4], None, None, 1e-3),
        ],
    ),
    aligned(
        "native_group_norm",
        [
            Sample(IMAGE, CHANNEL, CHANNEL, 2, 6, 4, 3, EPS),
            Sample(IMAGE, None, None, 2, 6, 4, 2, 1e-3),
        ],
    ),
    aligned(
        "ops.aten._fused_rms_norm",
        [Sample(ROWS, [6], WEIGHT, EPS), Sample(T(2, 3, 4), [3, 4], None, None)],
    ),
    aligned(
        "native_batch_norm",
        [
            Sample(BATCH, SCALE, SHIFT, MEAN, VAR, False, 0.1, EPS),
            Sample(BATCH, None, None, MEAN, VAR, False, 0.1, EPS),
        ],
        out=False,
    ),
    # Its running statistics are written arguments, whose versions count even where they stay.
    aligned(
        "ops.aten._native_batch_norm_legit",
        [Sample(BATCH, SCALE, SHIFT, MEAN, VAR, False, 0.1, EPS)],
        grad=False,
    ),
    aligned(
        "native_batch_norm",
        [Sample(BATCH, SCALE, SHIFT, None, None, True, 0.1, EPS)],
        out=False,
    ),
    aligned(
        "ops.aten._native_batch_norm_legit.no_stats",
        [Sample(BATCH, SCALE, SHIFT, True, 0.1, EPS), Sample(T(4, 3), None, None, True, 0.1, EPS)],
    ),
    aligned(
        "ops.aten._native_batch_norm_legit_functional",
        [
            Sample(BATCH, SCALE, SHIFT, MEAN, VAR, True, 0.1, EPS),
            Sample(BATCH, None, None, MEAN, VAR, False, 0.1, EPS),
        ],
    ),
    aligned(
        "ops.aten._native_batch_norm_legit_no_training",
        [Sample(BATCH, SCALE, SHIFT, MEAN, VAR, 0.1, EPS)],
    ),
    aten(
        "native_layer_norm_backward",
        [
            Sample(
                ROWS,
                T(4, 6, **FIXED),
                [6],
                T(4, 1, **FIXED),
                T(4, 1, **STATISTICS),
                T(6, **FIXED),
                T(6, **FIXED),
                ALL,
            ),
            Sample(
                T(2, 3, 4),
                T(2, 3, 4, **FIXED),
                [3, 4],
                T(2, 1, 1, **FIXED),
                T(2, 1, 1, **STATISTICS),
                None,
                None,
                [True, False, False],
            ),
        ],
        dtypes="float64",
        tolerance=8,
    ),
    aten(
        "native_group_norm_backward",
        [
            Sample(
                IMAGE,
                T(2, 6, 4, **FIXED),
                T(2, 3, **FIXED),
                T(2, 3, **STATISTICS),
                T(6, **FIXED),
                2,
                6,
                4,
                3,
                ALL,
            )
        ],
        dtypes="full",
        beyond_torch="it has no derivative of it",
        tolerance=8,
    ),
    aten(
        "native_batch_norm_backward",
        [
            Sample(
                BATCH,
                T(4, 3, 5, **FIXED),
                T(3, **FIXED),
                MEAN,
                VAR,
                MEAN,
                VAR,
                train,
                EPS,
                ALL,
            )
            for train in (True, False)
        ],
        dtypes="full",
        tolerance=8,
    ),
    aten(
        "_fused_rms_norm_backward",
        [
            Sample(
                ROWS,
                T(4, 6, **FIXED),
                [6],
                T(4, 1, **STATISTICS),
                T(6, **FIXED),
                [True, True],
            )
        ],
        dtypes="full",
        beyond_torch="it has a kernel on accelerators alone",
        tolerance=8,
    ),
]
