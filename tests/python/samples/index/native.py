"""Samples of what indexing is made of: operators that `ops.aten` has, and their backward."""

from samples.common import Sample, T, aten

ALL = "float complex int bool"
ROWS = T(3, 4)
FIRST, SECOND = (T(2, dtype="int64", low=0, high=2) for _ in range(2))
ONCE = T(2, dtype="int64", low=0, high=2, unique=True)
MASK = T(3, 4, dtype="bool")

OPS = [
    *[
        aten(
            name,
            [
                Sample(ROWS, [FIRST]),
                Sample(ROWS, [FIRST, SECOND]),
                Sample(T(2, 3, 4), [None, FIRST]),
            ],
            dtypes=ALL,
        )
        for name in ("index.Tensor", "_unsafe_index.Tensor")
    ],
    aten(
        "_unsafe_index_put",
        [Sample(ROWS, [ONCE], T(2, 4)), Sample(ROWS, [FIRST, SECOND], T(2), True)],
        dtypes="full complex",
    ),
    aten(
        "_index_put_impl_",
        [Sample(ROWS, [ONCE], T(2, 4)), Sample(ROWS, [FIRST, SECOND], T(2), True)],
        dtypes="full complex",
        grad=False,
        layouts=False,
    ),
    aten("masked_scatter_backward", [Sample(ROWS, MASK, [3, 4])], dtypes="full complex"),
    aten("nonzero_numpy", [Sample(ROWS), Sample(T(4, low=-1, high=1))], dtypes=ALL, grad=False),
]
