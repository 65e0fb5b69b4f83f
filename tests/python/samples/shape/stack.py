"""Tensors joined along new or old dimensions."""

import numpy as np
from samples.common import Error, Op, Sample, T

ALL = "float complex int bool"

NUMBERS = "float complex int"

LIST = [Sample([T(2, 3), T(2, 3)]), Sample([T(3), T(3)]), Sample([T(), T()])]


OPS = [
    Op(
        "stack",
        dtypes=ALL,
        samples=LIST
        + [Sample([T(2, 3, layout="transposed"), T(2, 3)], -1), Sample([T(0, 2), T(0, 2)], 1)],
        errors=[Error(RuntimeError, "expects each tensor to be equal size", Sample([T(2), T(3)]))],
    ),
    Op("hstack", dtypes=ALL, samples=LIST, reference=lambda x: np.hstack(x)),
    Op("vstack", dtypes=ALL, samples=LIST, reference=lambda x: np.vstack(x)),
    Op("dstack", dtypes=ALL, samples=LIST, reference=lambda x: np.dstack(x)),
    Op("column_stack", dtypes=ALL, samples=LIST, reference=lambda x: np.column_stack(x)),
    Op(
        "combinations",
        dtypes=ALL,
        samples=[
            Sample(T(5)),
            Sample(T(4), 3),
            Sample(T(3), 2, True),
            Sample(T(2), 3),
            Sample(T(3), 0),
        ],
    ),
    Op("block_diag", dtypes=NUMBERS, samples=[Sample(T(2, 3), T(3), T())]),
]
