"""Losses."""

from samples.common import Error, Op, Sample, T

PAIRS = [
    Sample(T(4, 5), T(4, 5)),
    Sample(T(4, 5, layout="transposed"), T(4, 5), reduction="none"),
    Sample(T(40, 300), T(40, 300), reduction="sum"),
    Sample(T(), T()),
]


def classes(*shape, below=3):
    return T(*shape, dtype="int64", low=0, high=below - 1)


OPS = [
    Op("nn.functional.mse_loss", PAIRS, tolerance=4),
    Op("nn.functional.l1_loss", PAIRS, tolerance=4),
    Op("nn.functional.smooth_l1_loss", PAIRS + [Sample(T(7), T(7), beta=0.4)], tolerance=4),
    Op("nn.functional.huber_loss", PAIRS + [Sample(T(7), T(7), delta=0.4)], tolerance=4),
    Op(
        "nn.functional.binary_cross_entropy",
        [
            Sample(T(4, 5, low=0.05, high=0.95), T(4, 5, low=0, high=1)),
            Sample(
                T(4, 5, low=0.05, high=0.95),
                T(4, 5, low=0, high=1),
                T(5, low=0, high=1, grad=False),
                reduction="none",
            ),
            Sample(
                T(4, 5, low=0.05, high=0.95),
                T(4, 5, low=0, high=1, grad=False),
                T(5, low=0, high=1, grad=False),
                reduction="sum",
            ),
        ],
        tolerance=4,
        errors=[
            Error(RuntimeError, "between 0 and 1", Sample(T(2, low=2, high=3), T(2, low=0, high=1)))
        ],
    ),
    Op(
        "nn.functional.binary_cross_entropy_with_logits",
        [
            Sample(T(4, 5), T(4, 5, low=0, high=1)),
            Sample(
                T(4, 5),
                T(4, 5, low=0, high=1),
                T(5, low=0, high=1, grad=False),
                pos_weight=T(5, low=0.5, grad=False),
                reduction="sum",
            ),
            Sample(T(4, 5), T(4, 5, low=0, high=1), T(4, 1, low=0, high=1, grad=False)),
            Sample(
                T(4, 5),
                T(4, 5, low=0, high=1),
                pos_weight=T(5, low=0.5, grad=False),
                reduction="none",
            ),
        ],
        tolerance=4,
    ),
    Op(
        "nn.functional.multi_margin_loss",
        [
            Sample(T(4, 3), classes(4)),
            Sample(T(4, 3), classes(4), p=2, reduction="sum"),
            Sample(T(3), classes()),
            Sample(
                T(4, 3),
                classes(4),
                margin=0.5,
                weight=T(3, low=0, high=1, grad=False),
                reduction="none",
            ),
            Sample(T(3), classes(1), reduction="none"),
            Sample(T(0, 3), classes(0), reduction="none"),
            Sample(T(4, 3, layout="transposed"), classes(4), p=2),
        ],
        dtypes="full",
        gradgrad=False,
        tolerance=4,
        errors=[
            Error(
                RuntimeError, "out of range", Sample(T(2, 3), T(2, dtype="int64", low=3, high=5))
            ),
            Error((RuntimeError, ValueError), "p", Sample(T(2, 3), classes(2), p=3)),
            Error(RuntimeError, "one class for each", Sample(T(2, 3), classes(3))),
        ],
    ),
    Op(
        "nn.functional.multilabel_margin_loss",
        [
            Sample(T(4, 3), T(4, 3, dtype="int64", low=-1, high=2)),
            Sample(T(3), T(3, dtype="int64", low=-1, high=2)),
            Sample(T(4, 3), T(4, 3, dtype="int64", low=-1, high=2), reduction="none"),
            Sample(
                T(5, 6, layout="transposed"), T(5, 6, dtype="int64", low=0, high=5), reduction="sum"
            ),
        ],
        dtypes="full",
        gradgrad=False,
        tolerance=4,
        errors=[
            Error(
                RuntimeError, "out of range", Sample(T(2, 3), T(2, 3, dtype="int64", low=3, high=5))
            ),
            Error(
                RuntimeError,
                "shape of self",
                Sample(T(2, 3), T(2, 2, dtype="int64", low=0, high=1)),
            ),
        ],
    ),
    Op(
        "nn.functional.nll_loss",
        [
            Sample(T(4, 3), classes(4)),
            Sample(T(4, 3), classes(4), T(3, low=0, high=1, grad=False)),
            Sample(T(2, 3, 4, 5), classes(2, 4, 5), reduction="none"),
            Sample(T(3), classes()),
            Sample(T(4, 3), classes(4), ignore_index=1, reduction="sum"),
        ],
        tolerance=4,
        errors=[
            Error(IndexError, "out of bounds", Sample(T(2, 3), T(2, dtype="int64", low=7, high=9)))
        ],
    ),
    Op(
        "nn.functional.cross_entropy",
        [
            Sample(T(4, 3), classes(4)),
            Sample(T(4, 3), T(4, 3, low=0, high=1)),
            Sample(T(2, 3, 4), classes(2, 4)),
            Sample(T(4, 3), classes(4), label_smoothing=0.2),
            Sample(T(4, 3), classes(4), ignore_index=1, reduction="sum"),
            Sample(T(4, 3), classes(4), T(3, low=0.5, high=1, grad=False), label_smoothing=0.1),
        ],
        tolerance=4,
    ),
    Op(
        "nn.functional.embedding",
        [
            Sample(T(2, 3, dtype="int64", low=0, high=4), T(5, 6)),
            Sample(T(dtype="int64", low=1, high=1), T(5, 6)),
            Sample(T(9, dtype="int32", low=0, high=4), T(5, 6, grad=False), 2),
        ],
        tolerance=4,
        errors=[
            Error(
                IndexError,
                "index out of range",
                Sample(T(2, dtype="int64", low=5, high=7), T(3, 2)),
            )
        ],
    ),
    Op(
        "nn.functional.kl_div",
        [
            Sample(T(4, 5), T(4, 5, low=0.1)),
            Sample(T(4, 5), T(4, 5), log_target=True, reduction="sum"),
        ],
        tolerance=4,
    ),
    Op(
        "nn.functional.cosine_similarity",
        [Sample(T(3, 4, 5), T(3, 4, 5)), Sample(T(3, 4, 5), T(4, 1), dim=-1)],
        tolerance=8,
    ),
]
