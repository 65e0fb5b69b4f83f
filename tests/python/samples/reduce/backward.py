"""Samples of the operators that derivatives of reductions are made of, and of second names."""

from samples.common import Named, Op, Sample, T, aten

FEWER = "its kernels take fewer dtypes"
GRAD = T(3, 4)
FIXED = T(3, 4, grad=False), T(5, 4, grad=False)
INDICES = T(3, 4, dtype="int64", low=0, high=2)


def softmax_backward(name):
    """Its last argument is the dtype of what was given to softmax: a row for each."""
    return [
        Op(
            name,
            [Sample(GRAD, T(3, 4, low=0.1, high=0.9), dim, Named(dtype)) for dim in (0, 1)],
            dtypes=dtype,
        )
        for dtype in ("float32", "float64", "bfloat16")
    ]


OPS = [
    *softmax_backward("_softmax_backward_data"),
    *softmax_backward("_log_softmax_backward_data"),
    aten("special_softmax", [Sample(GRAD, 1)]),
    aten("special_log_softmax", [Sample(GRAD, 1)]),
    aten("special_logsumexp", [Sample(GRAD, 1), Sample(GRAD, [0, 1], True)]),
    aten("special_round", [Sample(GRAD), Sample(GRAD, decimals=1)]),
    aten("cummaxmin_backward", [Sample(GRAD, T(3, 4, grad=False), INDICES, 0)], dtypes="full"),
    aten(
        "cumprod_backward",
        [Sample(GRAD, T(3, 4, low=1, high=1, grad=False), 0, T(3, 4, low=1, high=1, grad=False))],
        dtypes="full complex",
    ),
    aten(
        "value_selecting_reduction_backward",
        [
            Sample(T(4), 0, T(4, dtype="int64", low=0, high=2), [3, 4], False),
            Sample(T(3, 1), 1, T(3, 1, dtype="int64", low=0, high=3), [3, 4], True),
        ],
        dtypes="full complex",
    ),
    aten(
        "unique_dim_consecutive",
        [Sample(T(4, 2, low=0, high=1), 0, True, True)],
        dtypes="int",
        grad=False,
    ),
    Op("_unique2", [Sample(T(6, low=0, high=3), True, True, True)], dtypes="int", grad=False),
    Op(
        "unique_consecutive",
        [Sample(T(4, 2, low=0, high=1), True, True, 0)],
        dtypes="int",
        grad=False,
        method=False,
    ),
    Op(
        "_histogramdd_from_bin_tensors",
        [Sample(T(6, 2), [T(3, low=-2, high=-2), T(3, low=-2, high=-2)])],
        dtypes="full",
        grad=False,
    ),
    Op("trapz", [Sample(GRAD), Sample(GRAD, dx=2.0, dim=0), Sample(GRAD, T(4))]),
    *[
        aten(
            "_cdist_forward",
            [Sample(T(3, 4), T(5, 4), p, mode), Sample(T(2, 3, 4), T(2, 5, 4), p, mode)],
            dtypes="full",
            tolerance=20,
        )
        for p, mode in ((1.0, None), (2.0, 2), (3.0, None))
    ],
    *[
        aten(
            "_cdist_backward",
            [Sample(T(3, 5), *FIXED, p, T(3, 5, low=1.0, grad=False))],
            dtypes="full",
            gradgrad=False,
            tolerance=20,
        )
        for p in (1.0, 2.0, 3.0)
    ],
    aten(
        "_euclidean_dist",
        [Sample(T(3, 4), T(5, 4))],
        dtypes="full",
        tolerance=20,
        beyond_torch=FEWER,
    ),
    aten(
        "_pdist_forward",
        [Sample(T(4, 3)), Sample(T(4, 3), 1.0)],
        dtypes="full",
        gradgrad=False,
        beyond_torch="it asks for contiguous rows",
    ),
]
