"""Samples of src/ops/embedding: the backward of tables and of their bags."""

from samples.common import Sample, T, aten

INDICES = T(2, 3, dtype="int64", low=0, high=4)
WORDS = T(6, dtype="int64", low=0, high=4)
STARTS = T(2, dtype="int64", low=0, high=0)
BAG_OF = T(6, dtype="int64", low=0, high=1)
SIZES = T(2, dtype="int64", low=3, high=3)
NO_MAXIMA = T(0, dtype="int64")
BAGS = WORDS, BAG_OF, SIZES, NO_MAXIMA
SUM, MEAN = 0, 1
# PyTorch reads indices without their strides, which the table changes in float32.
ONE = {
    "dtypes": "float64",
    "grad": False,
    "beyond_torch": "its kernels ask that indices be contiguous, and it has no second derivative",
}

OPS = [
    aten(
        "_embedding_bag_forward_only",
        [Sample(T(5, 4), WORDS, STARTS, False, mode) for mode in (SUM, MEAN)],
        **ONE,
    ),
    aten("embedding_renorm_", [Sample(T(5, 4), WORDS, 1.0, 2.0)], layouts=False, **ONE),
    aten(
        "embedding_dense_backward",
        [
            Sample(T(2, 3, 4), INDICES, 5, -1, False),
            Sample(T(2, 3, 4, grad=False), INDICES, 5, 1, True),
        ],
        dtypes="full",
    ),
    aten("embedding_backward", [Sample(T(2, 3, 4), INDICES, 5, 2, False, False)], dtypes="full"),
    aten(
        "_embedding_bag_dense_backward",
        [Sample(T(2, 4, grad=False), *BAGS, 5, False, mode, None) for mode in (SUM, MEAN)],
        **ONE,
    ),
    aten(
        "_embedding_bag_backward",
        [
            Sample(T(2, 4, grad=False), WORDS, STARTS, *BAGS[1:], 5, False, SUM, False, weights)
            for weights in (None, T(6, grad=False))
        ],
        **ONE,
    ),
    aten(
        "_embedding_bag_per_sample_weights_backward",
        [Sample(T(2, 4, grad=False), T(5, 4, grad=False), WORDS, STARTS, BAG_OF, SUM)],
        **ONE,
    ),
]
