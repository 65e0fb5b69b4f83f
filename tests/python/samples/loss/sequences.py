"""Bags of embeddings and losses of sequences."""

from samples.common import Error, Op, Sample, T


def numbers(*shape, high=5):
    return T(*shape, dtype="int64", low=0, high=high)


ZERO = T(1, dtype="int64", low=0, high=0)
LOGITS = T(6, 2, 4, low=-3, high=0)

OPS = [
    Op(
        "nn.functional.embedding_bag",
        [
            Sample(numbers(3, 4), T(6, 5), mode="sum"),
            Sample(numbers(3, 4), T(6, 5)),
            Sample(numbers(3, 4), T(6, 5, layout="transposed"), mode="max"),
            Sample(numbers(7), T(6, 5), ZERO, mode="sum"),
            Sample(numbers(3, 4), T(6, 5), mode="sum", per_sample_weights=T(3, 4)),
            Sample(numbers(3, 4), T(6, 5), padding_idx=2),
            Sample(numbers(3, 4), T(6, 5), mode="max", padding_idx=-1),
            Sample(numbers(3, 4), T(6, 5, grad=False), mode="sum", scale_grad_by_freq=True),
            Sample(numbers(0), T(6, 5), ZERO),
            Sample(T(3, 4, dtype="int32", low=0, high=5), T(6, 5), mode="sum"),
        ],
        gradgrad=False,
        tolerance=4,
        errors=[
            Error(RuntimeError, "must be a row", Sample(numbers(2, 3, high=99), T(2, 3))),
            Error((RuntimeError, ValueError), "", Sample(numbers(3), T(6, 5))),
            Error((RuntimeError, ValueError), "mode", Sample(numbers(2, 3), T(6, 5), mode="min")),
            Error(RuntimeError, "padding_idx", Sample(numbers(2, 3), T(6, 5), padding_idx=9)),
        ],
    ),
    Op(
        "nn.functional.ctc_loss",
        [
            Sample(LOGITS, T(2, 3, dtype="int64", low=1, high=3), (6, 5), (2, 3)),
            Sample(
                T(6, 1, 4, low=-3, high=0),
                T(3, dtype="int64", low=1, high=3),
                (5,),
                (3,),
                reduction="sum",
            ),
            Sample(LOGITS, T(2, 3, dtype="int64", low=1, high=3), (6, 4), (0, 2), reduction="none"),
            Sample(
                LOGITS,
                T(2, 3, dtype="int64", low=0, high=2),
                (6, 6),
                (2, 3),
                blank=3,
                reduction="none",
            ),
            Sample(
                LOGITS,
                T(2, 6, dtype="int64", low=1, high=3),
                (6, 2),
                (2, 6),
                reduction="none",
                zero_infinity=True,
            ),
            Sample(T(6, 4, low=-3, high=0), T(3, dtype="int64", low=1, high=3), (6,), (3,)),
            Sample(
                LOGITS,
                T(2, 3, dtype="int64", low=1, high=3),
                T(2, dtype="int64", low=6, high=6),
                T(2, dtype="int64", low=2, high=3),
            ),
        ],
        dtypes="full",
        grad=False,
        gradgrad=False,
        tolerance=20,
        errors=[
            Error(
                RuntimeError,
                "input_lengths",
                Sample(LOGITS, T(2, 3, dtype="int64", low=1, high=3), (7, 5), (2, 3)),
            ),
            Error(
                RuntimeError,
                "input_lengths",
                Sample(LOGITS, T(2, 3, dtype="int64", low=1, high=3), (6,), (2, 3)),
            ),
            Error(
                RuntimeError,
                "blank",
                Sample(LOGITS, T(2, 3, dtype="int64", low=1, high=3), (6, 5), (2, 3), blank=4),
            ),
            Error(
                RuntimeError,
                "targets",
                Sample(LOGITS, T(2, 3, dtype="int64", low=1, high=3), (6, 5), (2, 4)),
            ),
        ],
    ),
]
