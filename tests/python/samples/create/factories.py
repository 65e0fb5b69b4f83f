"""Samples of tensors made from sizes: filled ones by value, drawn and empty ones by geometry."""

from samples.common import Error, Op, Sample, T

SIZES = [
    Sample((2, 3)),
    Sample(()),
    Sample((0, 3)),
    Sample((2, 3), dtype="float64"),
    Sample(3, dtype="int64"),
]
LIKE = [
    Sample(T(2, 3)),
    Sample(T(2, 3, layout="transposed")),
    Sample(T()),
    Sample(T(2, 3), dtype="float64"),
]
BAD_SIZE = [Error(RuntimeError, "negative", Sample((2, -1)))]
MADE = {"dtypes": "float32", "grad": False, "out": False}
DRAWN = {**MADE, "nondeterministic": True}
PARTS = Sample(T(3, 4, low=0.1, high=0.9, grad=False))

OPS = [
    *[Op(name, SIZES, errors=BAD_SIZE, **MADE) for name in ("zeros", "ones")],
    Op(
        "full",
        [Sample((2, 3), 7), Sample((), 1.5), Sample((2,), True), Sample((2,), 3, dtype="float64")],
        **MADE,
    ),
    *[
        Op(name, LIKE, **{**MADE, "dtypes": "float32 int64 bool"})
        for name in ("zeros_like", "ones_like")
    ],
    Op(
        "full_like",
        [Sample(T(2, 3), 7), Sample(T(2, 3, layout="transposed"), 1)],
        **{**MADE, "dtypes": "float32 int64"},
    ),
    Op("scalar_tensor", [Sample(2.5), Sample(3, dtype="int64")], **MADE),
    Op("range", [Sample(1, 4), Sample(0, 1, 0.25)], **MADE),
    *[
        Op(
            f"Tensor.new_{name}",
            [Sample(T(2), (2, 3)), Sample(T(2), (0,), dtype="float64")],
            **{**MADE, "dtypes": "float32 int64"},
        )
        for name in ("zeros", "ones")
    ],
    Op("Tensor.new_full", [Sample(T(2), (2, 3), 4)], **{**MADE, "dtypes": "float32 int64"}),
    Op("Tensor.new_empty", [Sample(T(2), (2, 3))], **DRAWN),
    Op("Tensor.new_empty_strided", [Sample(T(2), (2, 3), (1, 2))], **DRAWN),
    *[Op(name, SIZES, errors=BAD_SIZE, **DRAWN) for name in ("empty",)],
    Op("empty_like", LIKE, **DRAWN),
    Op("empty_strided", [Sample((2, 3), (1, 2))], **DRAWN),
    Op("empty_permuted", [Sample((2, 3, 4), (2, 0, 1))], **DRAWN),
    *[Op(name, SIZES[:4], **DRAWN) for name in ("rand", "randn")],
    *[Op(name, LIKE, **DRAWN) for name in ("rand_like", "randn_like")],
    Op(
        "randint",
        [Sample(5, (2, 3)), Sample(2, 9, (4,)), Sample(5, (2,), dtype="float32")],
        errors=[Error(RuntimeError, "", Sample(3, 3, (2,)))],
        **DRAWN,
    ),
    Op("randint_like", [Sample(T(2, 3), 5), Sample(T(2, 3), 1, 4)], **DRAWN),
    Op("randperm", [Sample(5), Sample(0)], errors=[Error(RuntimeError, "", Sample(-1))], **DRAWN),
    Op(
        "normal",
        [
            Sample(0.0, 1.0, (2, 3)),
            Sample(T(3), T(3, low=0.5)),
            Sample(T(3), 2.0),
            Sample(1.0, T(3, low=0.5)),
        ],
        errors=[Error(RuntimeError, "std", Sample(0.0, -1.0, (2,)))],
        **DRAWN,
    ),
    Op(
        "bernoulli",
        [PARTS, Sample(T(3, low=0, high=1), 0.3)],
        errors=[Error(RuntimeError, "", Sample(T(2), 1.5))],
        **{**DRAWN, "inplace": False},
    ),
    Op("poisson", [Sample(T(3, 4, low=0, high=9, grad=False))], **DRAWN),
    Op(
        "binomial",
        [Sample(T(4, low=3, high=9, grad=False), T(4, low=0, high=1, grad=False))],
        **DRAWN,
    ),
    Op(
        "multinomial",
        [Sample(T(4, low=0.1, high=1), 2), Sample(T(2, 4, low=0.1, high=1), 9, True)],
        errors=[
            Error(RuntimeError, "n_sample", Sample(T(3, low=0.1), 0)),
            Error(RuntimeError, "without replacement", Sample(T(3, low=0.1), 4)),
            Error(RuntimeError, "1 or 2 dim", Sample(T(1, 1, 3, low=0.1), 1)),
        ],
        **DRAWN,
    ),
    *[
        Op(
            f"Tensor.{name}_",
            [Sample(T(3, 4), *args), Sample(T(3, 4, layout="transposed")), Sample(T(0))],
            **DRAWN,
        )
        for name, args in (
            ("uniform", (-1, 3)),
            ("normal", (1, 2)),
            ("cauchy", (0, 2)),
            ("exponential", (2,)),
            ("log_normal", (0, 1)),
            ("random", ()),
        )
    ],
    Op(
        "Tensor.geometric_",
        [Sample(T(3, 4), 0.3)],
        errors=[Error(RuntimeError, "p must be", Sample(T(3), 1.5))],
        **DRAWN,
    ),
    Op("Tensor.bernoulli_", [Sample(T(3, 4), 0.3)], **DRAWN),
    *[
        Op(
            name,
            [
                Sample(T(3, 4, 2, grad=False), 0.3, True),
                Sample(T(3, 4, 2, grad=False), 0.3, False),
                Sample(T(3, 4, 2, grad=False), 0.0, True),
            ],
            errors=[Error(RuntimeError, "p must be", Sample(T(3, 4), 1.5, True))],
            **{**DRAWN, "inplace": False},
        )
        for name in ("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout")
    ],
    Op("native_dropout", [Sample(T(3, 4, grad=False), 0.3, True)], **DRAWN),
    Op(
        "nn.functional.scaled_dot_product_attention",
        [
            Sample(T(2, 3, 4), T(2, 5, 4), T(2, 5, 6)),
            Sample(T(2, 2, 3, 4), T(2, 2, 3, 4), T(2, 2, 3, 4), is_causal=True),
            Sample(T(1, 3, 4), T(1, 5, 4), T(1, 5, 4), T(3, 5, grad=False)),
            Sample(T(1, 3, 4), T(1, 5, 4), T(1, 5, 4), T(3, 5, dtype="bool")),
            Sample(T(2, 3, 4), T(2, 5, 4), T(2, 5, 6), scale=0.3),
        ],
        dtypes="full",
        tolerance=8,
        gradgrad=False,
    ),
]
