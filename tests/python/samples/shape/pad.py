"""Padding, and the shuffles between channels and pixels."""

from samples.common import Error, Op, Sample, T

ALL = "float complex int bool"


def images(*modes):
    return (
        [Sample(T(2, 3, 4, 5), [1, 2, 2, 1], mode=m) for m in modes]
        + [Sample(T(1, 3, 4, 5, layout="channels_last"), [1, 0, 2, 1], mode=m) for m in modes]
        + [Sample(T(3, 4), [1, 1], mode=m) for m in modes]
        + [Sample(T(1, 2, 3, 4, 3), [1, 1, 0, 1, 2, 0], mode=m) for m in modes]
    )


OPS = [
    Op(
        "nn.functional.pad",
        dtypes="float complex",
        samples=[
            Sample(T(2, 3), (1, 2)),
            Sample(T(2, 3, layout="transposed"), (-1, 2, 1, 0), value=3.0),
            *images("reflect", "replicate", "circular"),
        ],
        errors=[
            Error(RuntimeError, "pad must have an even length", Sample(T(3), (1,))),
            Error(
                NotImplementedError,
                "Unrecognised padding mode",
                Sample(T(1, 2, 3), (1, 1), mode="odd"),
            ),
        ],
    ),
    Op(
        "nn.functional.pixel_shuffle",
        dtypes=ALL,
        samples=[Sample(T(2, 8, 3, 2), 2), Sample(T(4, 3, 3), 2)],
    ),
    Op(
        "nn.functional.pixel_unshuffle",
        dtypes=ALL,
        samples=[Sample(T(2, 2, 6, 4), 2), Sample(T(1, 3, 3), 3)],
    ),
]
