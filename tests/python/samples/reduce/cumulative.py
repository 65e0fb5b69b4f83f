"""Running sums, products and extrema; differences and trapezoids."""

import numpy as np
from samples.common import Error, Op, Sample, T

ALONG = [
    Sample(T(3, 4), 0),
    Sample(T(3, 4), -1),
    Sample(T(3, 4, 5), 1),
    Sample(T(3, 4, 5, layout="transposed"), 1),
    Sample(T(4, 6, layout="strided"), 0),
    Sample(T(0, 3), 0),
    Sample(T(), 0),
]
INDEX_ERROR = Error(IndexError, "Dimension out of range", Sample(T(3, 4), 2))


def along(f):
    """The NumPy function with this library's names of arguments."""
    return lambda x, dim: f(x, axis=dim) if np.ndim(x) else np.asarray(x)


OPS = [
    Op(
        "cumsum",
        samples=ALONG + [Sample(T(2, 3000), 1)],
        reference=along(np.cumsum),
        dtypes="float complex",
        errors=[INDEX_ERROR],
    ),
    Op(
        "cumsum",
        samples=[Sample(T(3, 4), 0), Sample(T(3, 4), 1, dtype="float32")],
        dtypes="int bool",
    ),
    Op(
        "cumprod",
        samples=ALONG,
        reference=along(np.cumprod),
        dtypes="float complex",
        errors=[INDEX_ERROR],
    ),
    Op(
        "cumprod",
        samples=[Sample(T(3, 4), 0), Sample(T(3, 4), 1, dtype="float32")],
        dtypes="int bool",
    ),
    Op("cummax", samples=ALONG, dtypes="float int bool", errors=[INDEX_ERROR]),
    Op("cummin", samples=ALONG, dtypes="float int bool", errors=[INDEX_ERROR]),
    Op("logcumsumexp", samples=ALONG, dtypes="float complex", errors=[INDEX_ERROR]),
    Op(
        "diff",
        samples=[
            Sample(T(3, 4)),
            Sample(T(3, 4), 2),
            Sample(T(3, 4), 1, 0),
            Sample(T(3, 4), 0),
            Sample(T(3, 4), 5),
            Sample(T(3, 4), prepend=T(3, 1), append=T(3, 2)),
        ],
        dtypes="float complex int bool",
        errors=[
            Error(RuntimeError, "input must have a dimension", Sample(T())),
            Error(RuntimeError, "n must not be negative", Sample(T(3), -1)),
        ],
    ),
    Op(
        "trapezoid",
        samples=[
            Sample(T(3, 4)),
            Sample(T(3, 4), T(3, 4)),
            Sample(T(3, 4), T(4)),
            Sample(T(3, 4), dx=2, dim=0),
            Sample(T(2, 0)),
        ],
        dtypes="float complex",
        errors=[
            Error(RuntimeError, "x must have one value for each of the 4", Sample(T(3, 4), T(3)))
        ],
    ),
    Op(
        "cumulative_trapezoid",
        samples=[
            Sample(T(3, 4)),
            Sample(T(3, 4), T(3, 4)),
            Sample(T(3, 4), T(4)),
            Sample(T(3, 4), dx=2, dim=0),
            Sample(T(2, 0)),
        ],
        dtypes="float complex",
    ),
]
