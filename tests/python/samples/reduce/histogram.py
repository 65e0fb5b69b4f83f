"""Histograms with their edges."""

from samples.common import Error, Op, Sample, T

OPS = [
    Op(
        "histogram",
        [
            Sample(T(50), 5),
            Sample(T(20)),
            Sample(T(7, 8, layout="transposed"), 4, range=(-1.0, 1.0)),
            Sample(T(0), 3),
            Sample(T(6, low=0, high=0), 4),
            Sample(T(40), T(5, low=-1.5, high=1.5, unique=True)),
            Sample(T(30), 6, weight=T(30, low=0)),
            Sample(T(30), 6, range=(-2.0, 2.0), density=True),
            Sample(T(3, low=1, high=1), 2, range=(1.0, 1.0)),
            Sample(T(), 2),
        ],
        dtypes="full",
        grad=False,
        errors=[
            Error(RuntimeError, "bins must be positive", Sample(T(3), 0)),
            Error(RuntimeError, "must not fall", Sample(T(3), 4, range=(3.0, 1.0))),
            Error(RuntimeError, "one weight for each", Sample(T(3), 4, weight=T(2))),
            Error(RuntimeError, "2 elements", Sample(T(3), 4, range=(1.0,))),
            Error(RuntimeError, "dtype of self", Sample(T(3), T(3, dtype="float64"))),
            Error(RuntimeError, "must be a vector", Sample(T(3), T(1, 3))),
            Error(
                NotImplementedError, "not implemented for 'Long'", Sample(T(3, dtype="int64"), 4)
            ),
        ],
    ),
    Op(
        "histogramdd",
        [
            Sample(T(20, 2), [3, 4]),
            Sample(T(20, 3), 2),
            Sample(T(4, 5, 2), [2, 2]),
            Sample(T(20, 1), [3], range=[-1.0, 1.0]),
            Sample(T(20, 2), [3, 4], weight=T(20, low=0)),
            Sample(T(20, 2), [2, 2], range=[-2.0, 2.0, -2.0, 2.0], density=True),
        ],
        dtypes="full",
        grad=False,
        errors=[
            Error(RuntimeError, "one number for each", Sample(T(5, 2), [2])),
            Error(RuntimeError, "at least 2 dimensions", Sample(T(5), [2])),
            Error(RuntimeError, "4 elements", Sample(T(5, 2), [2, 2], range=[0.0, 1.0])),
        ],
    ),
]
