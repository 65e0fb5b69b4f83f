"""Samples of src/ops/linalg/lstsq.cpp."""

from samples.common import Error, Op, Sample, T

DRIVERS = ("gels", "gelsy", "gelsd", "gelss")

OPS = [
    Op(
        "linalg.lstsq",
        [
            *(Sample(T(5, 3), T(5, 2), driver=driver) for driver in DRIVERS),
            *(Sample(T(2, 3, 5), T(2, 3, 2), driver=driver) for driver in DRIVERS),
            Sample(T(3, 3), T(3, 2)),
            Sample(T(5, 3), T(5)),
            Sample(T(2, 5, 3), T(2, 5), driver="gels"),
            Sample(T(2, 4, 3), T(1, 4, 2), driver="gelsd"),
            Sample(T(5, 3), T(5, 2), rcond=1e-3),
            Sample(T(0, 3), T(0, 2)),
            Sample(T(0, 4, 3), T(0, 4, 2)),
        ],
        dtypes="full complex",
        tolerance=5000,
        errors=[
            Error(RuntimeError, "2 dimensions", Sample(T(3), T(3))),
            Error(RuntimeError, "1 dimension", Sample(T(3, 2), T())),
            Error(RuntimeError, "as many dimensions", Sample(T(3, 2), T(1, 3, 2))),
            Error(RuntimeError, "rows of input", Sample(T(3, 2), T(2, 3))),
            Error(RuntimeError, "gels, gelsy", Sample(T(3, 2), T(3), driver="qr")),
            Error(RuntimeError, "one dtype", Sample(T(3, 2), T(3, dtype="float64"))),
        ],
    ),
]
