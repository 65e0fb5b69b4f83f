"""Samples of src/ops/attention: attention in its parts."""

from samples.common import Sample, T, aten

QUERY, KEY, VALUE = T(2, 2, 3, 4), T(2, 2, 5, 4), T(2, 2, 5, 6)

OPS = [
    aten(
        "_scaled_dot_product_attention_math",
        [
            Sample(QUERY, KEY, VALUE),
            Sample(QUERY, KEY, VALUE, T(2, 1, 3, 5), scale=0.3),
            Sample(QUERY, QUERY, QUERY, None, 0.0, True),
        ],
        dtypes="full",
        tolerance=8,
    ),
    aten("_safe_softmax", [Sample(T(3, 4), 1), Sample(T(3, 4), 0, dtype="float64")]),
]
