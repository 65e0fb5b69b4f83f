"""Reductions: sums, means, products, extrema, variances, norms."""

import numpy as np
from samples.common import Error, Op, Sample, T

# All elements, a dimension, several, negative ones, kept ones, other layouts, 0-dim, long ones for
# several blocks and parts.
ALONG = [
    Sample(T(3, 4)),
    Sample(T(3, 4), 0),
    Sample(T(3, 4, 5), (0, -1)),
    Sample(T(3, 4, 5), 1, keepdim=True),
    Sample(T(3, 4, 5, layout="transposed"), (1, 2)),
    Sample(T(4, 6, layout="strided"), -1),
    Sample(T(7, 300), 0),
    Sample(T()),
]
LONG = [Sample(T(5000), 0), Sample(T(2, 70000), 1), Sample(T(70000, 3), 0)]
EMPTY = [Sample(T(0, 3)), Sample(T(0, 3), 0), Sample(T(2, 0), 0)]
ONE_DIM = [
    Sample(T(3, 4, unique=True), 0),
    Sample(T(3, 4, unique=True), -1, keepdim=True),
    Sample(T(3, 5, 4, unique=True, layout="transposed"), 1),
    Sample(T(2, 100, unique=True), 1),
    Sample(T(3, 0), 0),
    Sample(T(), 0),
]
INDEX_ERROR = Error(IndexError, "Dimension out of range", Sample(T(3, 4), 2))
TWICE = Error(RuntimeError, "dim 0 appears multiple times", Sample(T(3, 4), (0, 0)))
NO_IDENTITY = Error(IndexError, "size 0 cannot be reduced", Sample(T(0, 3), 0))


def over(f):
    """The NumPy function with this library's names of arguments."""
    return lambda x, dim=None, keepdim=False: f(x, axis=dim, keepdims=keepdim)


OPS = [
    Op(
        "sum",
        samples=ALONG + LONG + EMPTY,
        reference=over(np.sum),
        dtypes="float complex",
        errors=[INDEX_ERROR, TWICE],
        tolerance=4,  # 70000 numbers of both signs cancel each other
    ),
    Op(
        "sum",
        samples=[
            Sample(T(3, 4)),
            Sample(T(3, 4), 1),
            Sample(T(300), 0),
            Sample(T(3), dtype="int32"),
            Sample(T(3), dtype="float32"),
        ],
        dtypes="int bool",
    ),
    Op("nansum", samples=ALONG + EMPTY, reference=over(np.nansum), dtypes="float"),
    Op(
        "mean",
        samples=ALONG + LONG,
        reference=over(np.mean),
        dtypes="float complex",
        errors=[
            INDEX_ERROR,
            Error(
                RuntimeError, "input's dtype must be floating point or", Sample(T(3, dtype="int64"))
            ),
        ],
    ),
    Op("nanmean", samples=ALONG, reference=over(np.nanmean), dtypes="float"),
    Op(
        "prod",
        samples=[
            Sample(T(3, 4)),
            Sample(T(3, 4), 0),
            Sample(T(3, 4), -1, keepdim=True),
            Sample(T(3, 4, layout="transposed"), 1),
            Sample(T()),
            Sample(T(0, grad=False)),
            Sample(T(0, 2, grad=False), 0),
        ],
        reference=over(np.prod),
        dtypes="float complex",
        errors=[INDEX_ERROR],
    ),
    Op(
        "prod",
        samples=[Sample(T(3, 4)), Sample(T(3, 4), 0), Sample(T(3), dtype="float32")],
        dtypes="int bool",
    ),
    Op(
        "any",
        grad=False,
        samples=ALONG + EMPTY + [Sample(T(3, 4), ())],
        dtypes="float int bool complex",
        errors=[INDEX_ERROR, TWICE],
    ),
    Op(
        "all",
        grad=False,
        samples=ALONG + EMPTY + [Sample(T(3, 4), ())],
        dtypes="float int bool complex",
        errors=[INDEX_ERROR, TWICE],
    ),
    Op(
        "count_nonzero",
        grad=False,
        samples=[
            Sample(T(3, 4)),
            Sample(T(3, 4), 0),
            Sample(T(3, 4, 5), (0, -1)),
            Sample(T(0, 3), 0),
        ],
        dtypes="float int bool complex",
    ),
    Op(
        "amax",
        samples=ALONG + LONG + [Sample(T(2, 0), 0)],
        reference=over(np.amax),
        dtypes="float int bool",
        errors=[
            NO_IDENTITY,
            TWICE,
            Error(RuntimeError, "dim must be given for an input without", Sample(T(0))),
        ],
    ),
    Op(
        "amin",
        samples=ALONG + LONG + [Sample(T(2, 0), 0)],
        reference=over(np.amin),
        dtypes="float int bool",
        errors=[NO_IDENTITY, TWICE],
    ),
    Op(
        "max",
        samples=[
            Sample(T(3, 4)),
            Sample(T(300)),
            Sample(T(3, 4, layout="transposed")),
            Sample(T()),
        ],
        reference=np.max,
        dtypes="float int bool",
        errors=[Error(RuntimeError, "dim must be given", Sample(T(0)))],
    ),
    Op(
        "min",
        samples=[
            Sample(T(3, 4)),
            Sample(T(300)),
            Sample(T(3, 4, layout="transposed")),
            Sample(T()),
        ],
        reference=np.min,
        dtypes="float int bool",
        errors=[Error(RuntimeError, "dim must be given", Sample(T(0)))],
    ),
    Op(
        "max",
        samples=ONE_DIM + [Sample(T(3, 4), T(4))],
        dtypes="float int",
        errors=[NO_IDENTITY, INDEX_ERROR],
    ),
    Op(
        "min",
        samples=ONE_DIM + [Sample(T(3, 4), T(4))],
        dtypes="float int",
        errors=[NO_IDENTITY, INDEX_ERROR],
    ),
    Op(
        "argmax",
        grad=False,
        samples=ONE_DIM + [Sample(T(3, 4)), Sample(T(3, 4), keepdim=True)],
        dtypes="float int",
        errors=[NO_IDENTITY, INDEX_ERROR],
    ),
    Op(
        "argmin",
        grad=False,
        samples=ONE_DIM + [Sample(T(3, 4)), Sample(T(3, 4), keepdim=True)],
        dtypes="float int",
        errors=[NO_IDENTITY, INDEX_ERROR],
    ),
    Op(
        "aminmax",
        samples=[
            Sample(T(3, 4)),
            Sample(T(3, 4), dim=0),
            Sample(T(3, 4), dim=-1, keepdim=True),
            Sample(T()),
        ],
        dtypes="float int bool",
    ),
    Op(
        "var",
        samples=ALONG[:-1]
        + [
            Sample(T(grad=False)),
            Sample(T(3, 4), 1, correction=0),
            Sample(T(70, 300), 1),
            Sample(T(3, 4), unbiased=False),
        ],
        dtypes="float complex",
        errors=[INDEX_ERROR],
    ),
    Op(
        "std",
        samples=ALONG[:-1]
        + [
            Sample(T(grad=False)),
            Sample(T(3, 4), 1, correction=0),
            Sample(T(70, 300), 0),
            Sample(T(3, 4), unbiased=False),
        ],
        dtypes="float complex",
        errors=[INDEX_ERROR],
    ),
    Op("var_mean", samples=ALONG[:6] + [Sample(T(3, 4), 1, correction=0)], dtypes="float complex"),
    Op("std_mean", samples=ALONG[:6] + [Sample(T(3, 4), 1, correction=0)], dtypes="float complex"),
    Op(
        "linalg.vector_norm",
        samples=[
            Sample(T(3, 4)),
            Sample(T(3, 4), 1),
            Sample(T(3, 4, grad=False), 0),
            Sample(T(3, 4), float("inf"), 1),
            Sample(T(3, 4), -float("inf"), 0),
            Sample(T(3, 4, 5), 3, (0, 2), keepdim=True),
            Sample(T(3, 4), 0.5, -1),
            Sample(T(3, 4), 1.5),
            Sample(T(70000), 2),
            Sample(T(0, 3, grad=False), 2, 0),
            Sample(T()),
        ],
        dtypes="float complex",
        errors=[
            Error(RuntimeError, "floating point or complex", Sample(T(3, dtype="int64"))),
            Error(RuntimeError, "order inf has no value for an input", Sample(T(0), float("inf"))),
        ],
    ),
    Op(
        "norm",
        samples=[
            Sample(T(3, 4)),
            Sample(T(3, 4), 1),
            Sample(T(3, 4), 2, 1),
            Sample(T(3, 4), 2, (0, 1), True),
        ],
        dtypes="float complex",
    ),
    Op(
        "logsumexp",
        samples=[
            Sample(T(3, 4), 0),
            Sample(T(3, 4, 5), (0, -1)),
            Sample(T(3, 4), -1, keepdim=True),
            Sample(T(0, 3, grad=False), 0),
            Sample(T(), 0),
            Sample(T(3, 4, low=90, high=200), 1),
        ],
        dtypes="float complex",
        errors=[INDEX_ERROR],
    ),
    Op("logsumexp", samples=[Sample(T(3, 4), 0)], dtypes="int"),
    Op(
        "Tensor.sum_to_size",
        samples=[Sample(T(3, 4), (1, 4)), Sample(T(2, 3, 4), (3, 1)), Sample(T(3, 4), (3, 4))],
        dtypes="float",
    ),
]
