"""Sorting and what is chosen by order."""

from samples.common import Error, Op, Sample, T

ALONG = [
    Sample(T(3, 4, unique=True)),
    Sample(T(3, 4, unique=True), 0),
    Sample(T(3, 5, 4, unique=True, layout="transposed"), 1),
    Sample(T(), 0),
]
DESCENDING = [Sample(T(3, 4, unique=True), 1, True), Sample(T(3, 0), 1)]
# Long enough for counting passes. Ties are common, so the order of equal values must be asked for.
STABLE = [
    Sample(T(700), stable=True),
    Sample(T(2, 600), stable=True, dim=1, descending=True),
    Sample(T(600, 2), stable=True, dim=0),
]
CHOSEN = [
    Sample(T(3, 5, unique=True), 0),
    Sample(T(3, 5, unique=True), -1, keepdim=True),
    Sample(T(3, 5, 4, unique=True, layout="transposed"), 1),
    Sample(T(3, 0), 0),
    Sample(T(), 0),
]
INDEX_ERROR = Error(IndexError, "Dimension out of range", Sample(T(3, 4), 2))
NO_IDENTITY = Error(IndexError, "size 0 cannot be reduced", Sample(T(0, 3), 0))

OPS = [
    Op("sort", samples=ALONG + DESCENDING, dtypes="float int", errors=[INDEX_ERROR]),
    Op("sort", samples=[Sample(T(50), stable=True), *STABLE], dtypes="float int bool"),
    Op("argsort", samples=ALONG + DESCENDING, dtypes="full", grad=False, out=False),
    Op("argsort", samples=STABLE, dtypes="float int", grad=False),
    Op("msort", samples=[Sample(T(4, 3, unique=True)), Sample(T(0, 2))], dtypes="float int"),
    Op(
        "topk",
        samples=[
            Sample(T(3, 5, unique=True), 2),
            Sample(T(3, 5, unique=True), 3, 0),
            Sample(T(200, unique=True), 2),
            Sample(T(3, 5, unique=True), 4, -1, False),
            Sample(T(3, 5), 0),
            Sample(T(), 1),
        ],
        dtypes="float",
        errors=[Error(RuntimeError, "selected index k out of range", Sample(T(3), 4))],
    ),
    Op(
        "kthvalue",
        samples=[
            Sample(T(3, 5, unique=True), 2),
            Sample(T(3, 5, unique=True), 3, 0, keepdim=True),
            Sample(T(), 1),
        ],
        dtypes="float",
        errors=[Error(RuntimeError, "out of range", Sample(T(3), 4))],
    ),
    Op(
        "median",
        samples=CHOSEN + [Sample(T(3, 5, unique=True)), Sample(T(0, grad=False))],
        dtypes="float",
        errors=[NO_IDENTITY],
    ),
    Op(
        "nanmedian",
        samples=CHOSEN + [Sample(T(3, 5, unique=True))],
        dtypes="float",
        errors=[NO_IDENTITY],
    ),
    Op("mode", samples=CHOSEN, dtypes="float int bool", errors=[NO_IDENTITY]),
    Op(
        "quantile",
        samples=[
            Sample(T(3, 5), 0.3),
            Sample(T(3, 5), T(2, low=0, high=1), 1),
            Sample(T(3, 5), T(2, low=0, high=1), 0, keepdim=True),
            Sample(T(3, 5), 0.3, keepdim=True),
        ]
        + [
            Sample(T(3, 5), 0.4, 1, interpolation=kind)
            for kind in ("lower", "higher", "midpoint", "nearest")
        ],
        dtypes="full",
        errors=[
            Error(RuntimeError, "q must be in [0, 1]", Sample(T(3), 1.5)),
            Error(RuntimeError, "input must have elements", Sample(T(0), 0.5)),
        ],
    ),
    Op(
        "nanquantile",
        samples=[Sample(T(3, 5), 0.3), Sample(T(3, 5), T(2, low=0, high=1), 1)],
        dtypes="full",
    ),
    Op(
        "unique",
        samples=[
            Sample(T(4, 3, low=0, high=1), dim=0, return_inverse=True, return_counts=True),
            Sample(T(2, 5, low=0, high=1), dim=1),
            Sample(T(2, 3, 4, low=0, high=1), dim=-1, return_inverse=True),
        ],
        dtypes="int",
        grad=False,
    ),
    Op(
        "unique_consecutive",
        samples=[Sample(T(2, 5, low=0, high=1), dim=1, return_counts=True)],
        dtypes="int",
        grad=False,
    ),
]
