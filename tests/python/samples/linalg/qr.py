"""Samples of src/ops/linalg/qr.cpp."""

from samples.common import Error, Op, Sample, T

SHAPES = [(3, 3), (5, 3), (3, 5), (2, 4, 3), (2, 1, 3, 4), (40, 30), (0, 0), (2, 0, 3), (3, 0)]
NOT_INTEGER = Error(NotImplementedError, "float32", Sample(T(2, 2, dtype="int64")))
FLAT = Error(RuntimeError, "2 dimensions", Sample(T(3)))


def _reflectors(*shape):
    """Vectors of reflectors; their factors are small enough for any vector."""
    return T(*shape), T(*shape[:-2], min(shape[-2:]), low=0.2, high=1)


OPS = [
    Op(
        "linalg.qr",
        [
            *(Sample(T(*shape)) for shape in SHAPES),
            *(Sample(T(*shape), mode="complete") for shape in ((3, 3), (3, 5), (2, 0, 3))),
            Sample(T(3, 3, layout="transposed")),
        ],
        dtypes="full complex",
        tolerance=1000,
        errors=[
            FLAT,
            NOT_INTEGER,
            Error(RuntimeError, "mode reduced, complete or r", Sample(T(2, 2), mode="full")),
        ],
    ),
    Op(
        "geqrf",
        [Sample(T(*shape)) for shape in SHAPES],
        dtypes="full complex",
        tolerance=200,
        grad=False,
        errors=[FLAT],
    ),
    *(
        Op(
            name,
            [
                *(
                    Sample(*_reflectors(*shape))
                    for shape in ((3, 3), (5, 3), (2, 4, 3), (0, 3, 2), (3, 0))
                ),
                Sample(T(4, 3), T(2, low=0.2, high=1)),
                Sample(T(4, 3), T(0)),
            ],
            dtypes="full complex",
            tolerance=200,
            errors=[
                Error(RuntimeError, "2 dimensions", Sample(T(3), T(3))),
                Error(RuntimeError, "at least as many elements", Sample(*_reflectors(2, 3))),
                Error(RuntimeError, "at most a factor", Sample(T(3, 2), T(3))),
                Error(RuntimeError, "one dimension less", Sample(T(3, 2), T(2, 2))),
                Error(RuntimeError, "one dtype", Sample(T(3, 2), T(2, dtype="float64"))),
            ],
        )
        for name in ("linalg.householder_product", "orgqr")
    ),
    Op(
        "ormqr",
        [
            Sample(*_reflectors(4, 3), T(4, 2)),
            Sample(*_reflectors(4, 3), T(4, 2), transpose=True),
            Sample(*_reflectors(4, 3), T(2, 4), left=False),
            Sample(*_reflectors(4, 3), T(2, 4), left=False, transpose=True),
            Sample(*_reflectors(2, 3, 3), T(2, 3, 2)),
            Sample(*_reflectors(3, 2), T(3, 0)),
        ],
        dtypes="full complex",
        tolerance=200,
        errors=[
            Error(RuntimeError, "rows of input", Sample(*_reflectors(3, 2), T(2, 2))),
            Error(RuntimeError, "a factor for each", Sample(T(3, 2), T(1), T(3, 2))),
            Error(RuntimeError, "batch", Sample(*_reflectors(3, 2), T(2, 3, 2))),
        ],
    ),
]
