"""Samples of tensors made from numbers."""

from samples.common import Error, Op, Sample, T, aten

SMALL = T(2, 3)

OPS = [
    aten("set_data", [Sample(SMALL, T(4))], grad=False),
    aten(
        "resize_storage_bytes_",
        [Sample(T(4), 64)],
        dtypes="bfloat16",
        nondeterministic=True,
        grad=False,
        beyond_torch="it has this in another library",
    ),
    Op(
        "Tensor.fill_",
        [Sample(SMALL, 2), Sample(SMALL, T())],
        dtypes="float complex int",
        grad=False,
    ),
    Op("Tensor.zero_", [Sample(SMALL)], dtypes="float complex int bool", grad=False),
    Op("Tensor.copy_", [Sample(SMALL, T(3)), Sample(SMALL, T(2, 3))], grad=False),
    Op(
        "ops.aten._to_copy",
        [Sample(SMALL), Sample(SMALL, dtype="float64")],
        dtypes="float int bool",
    ),
    # What lies behind the elements that were there is not set. Memory of NumPy's cannot grow, and
    # bfloat16 alone is not of NumPy.
    *[
        Op(
            f"Tensor.{name}_",
            [Sample(SMALL, other)],
            dtypes="bfloat16",
            nondeterministic=True,
            grad=False,
        )
        for name, other in (("resize", (4, 2)), ("resize_as", T(4, 2)), ("set", T(4)))
    ],
    Op(
        "arange",
        dtypes="float32",
        grad=False,
        samples=[
            Sample(5),
            Sample(1, 10, 3),
            Sample(1.5, 4),
            Sample(5, 0, -2),
            Sample(0, 1, 0.25, dtype="float64"),
            Sample(3, 3),
        ],
        errors=[
            Error(RuntimeError, "step must be nonzero", Sample(0, 1, 0)),
            Error(RuntimeError, "step must lead from start to end", Sample(0, 1, -1)),
        ],
    ),
    Op(
        "linspace",
        dtypes="float32",
        grad=False,
        out=False,
        samples=[
            Sample(0, 1, 5),
            Sample(-2.5, 7, 8, dtype="float64"),
            Sample(0, 10, 5, dtype="int64"),
            Sample(3, 9, 1),
            Sample(0, 1, 0),
        ],
        errors=[Error(RuntimeError, "number of steps must not be negative", Sample(0, 1, -1))],
    ),
    Op(
        "logspace",
        dtypes="float32",
        grad=False,
        out=False,
        samples=[Sample(0, 2, 5), Sample(-1, 1, 4, 2.0), Sample(0, 3, 4, dtype="int64")],
    ),
    Op(
        "eye",
        dtypes="float32",
        grad=False,
        out=False,
        samples=[Sample(3), Sample(2, 4), Sample(3, dtype="int64"), Sample(0)],
        errors=[Error(RuntimeError, "n must not be negative", Sample(-1))],
    ),
    Op(
        "tril_indices",
        dtypes="int64",
        grad=False,
        samples=[Sample(3, 4), Sample(4, 3, 1), Sample(3, 3, -5), Sample(0, 2)],
    ),
    Op(
        "triu_indices",
        dtypes="int64",
        grad=False,
        samples=[Sample(3, 4), Sample(4, 3, 1), Sample(3, 3, 5), Sample(0, 2)],
    ),
    Op(
        "vander",
        dtypes="full int",
        samples=[Sample(T(4)), Sample(T(3), 5, True), Sample(T(2), 0)],
        beyond_torch="its gradient stumbles over its own in-place operation",
    ),
    Op(
        "linalg.vander",
        dtypes="full int complex",
        samples=[Sample(T(4)), Sample(T(2, 3), N=5), Sample(T(), N=2)],
        beyond_torch="its gradient stumbles over its own in-place operation",
        errors=[
            Error(NotImplementedError, "bool", Sample(T(3, dtype="bool"))),
            Error(RuntimeError, "greater than 1", Sample(T(3), N=1)),
        ],
    ),
    *[
        Op(
            f"{name}_window",
            dtypes="float32",
            grad=False,
            samples=[Sample(7), Sample(7, False), Sample(1), Sample(0), Sample(6, dtype="float64")],
            errors=[Error(RuntimeError, "window_length must not be negative", Sample(-1))],
        )
        for name in ("bartlett", "hann", "hamming", "blackman", "kaiser")
    ],
]
