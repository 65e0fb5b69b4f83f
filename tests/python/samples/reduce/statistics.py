"""Searching, distinct values, histograms, covariance."""

from samples.common import Error, Op, Sample, T

OPS = [
    Op(
        "hash_tensor",
        [
            Sample(T(5)),
            Sample(T(2, 3)),
            Sample(T(2, 3, layout="transposed"), 0),
            Sample(T(2, 3, 4), (0, 2), keepdim=True),
            Sample(T()),
            Sample(T(0, 3), 1),
        ],
        dtypes="float int bool",
        grad=False,
        errors=[
            Error(RuntimeError, "mode", Sample(T(2), mode=1)),
            Error(RuntimeError, "needs dim", Sample(T(0))),
            Error(IndexError, "must not be empty", Sample(T(0, 3), 0)),
        ],
    ),
    Op(
        "searchsorted",
        grad=False,
        samples=[
            Sample(T(5, low=0, high=0), T(3)),
            Sample(T(5, low=1, high=1), T(3, 2), right=True),
            Sample(T(5, low=1, high=1), 3),
            Sample(T(2, 4, low=1, high=1), T(2, 3), side="right"),
            Sample(T(5, low=1, high=1), T(3), out_int32=True),
        ],
        dtypes="float int",
        errors=[
            Error(RuntimeError, "side must be 'left' or 'right'", Sample(T(3), T(2), side="up"))
        ],
    ),
    Op(
        "bucketize",
        grad=False,
        samples=[Sample(T(3, 2), T(4, low=0, high=0)), Sample(2, T(4, low=1, high=1), right=True)],
        dtypes="float int",
    ),
    Op(
        "bincount",
        grad=False,
        samples=[
            Sample(T(20, low=0, high=5)),
            Sample(T(20, low=0, high=5), minlength=9),
            Sample(T(20, low=0, high=5), T(20, dtype="float32")),
            Sample(T(0), minlength=2),
        ],
        dtypes="int",
        errors=[Error(RuntimeError, "input must have 1 dimension", Sample(T(2, 3, dtype="int64")))],
    ),
    Op(
        "histc",
        grad=False,
        samples=[
            Sample(T(50)),
            Sample(T(50), 5),
            Sample(T(50), 4, -1, 1),
            Sample(T(3, 5, layout="transposed"), 3),
        ],
        dtypes="full",
        errors=[Error(RuntimeError, "min must not be above max", Sample(T(3), 5, 2, 1))],
    ),
    Op(
        "isin",
        grad=False,
        samples=[
            Sample(T(3, 4), T(3)),
            Sample(T(3, 4), T(4), invert=True),
            Sample(T(3), 1),
            Sample(1, T(3)),
            Sample(T(2, 2), T(0)),
        ],
        dtypes="float int",
    ),
    Op(
        "cov",
        samples=[
            Sample(T(3, 5)),
            Sample(T(5)),
            Sample(T(3, 5), correction=0),
            Sample(
                T(3, 4),
                fweights=T(4, dtype="int64", low=1, high=4),
                aweights=T(4, low=0.5, high=2, grad=False),
            ),
        ],
        dtypes="full",
    ),
    Op("corrcoef", samples=[Sample(T(3, 5)), Sample(T(5))], dtypes="full"),
]
