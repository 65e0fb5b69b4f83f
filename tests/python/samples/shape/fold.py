"""Sliding blocks of images as columns, and back."""

from samples.common import Op, Sample, T

OPS = [
    Op(
        "nn.functional.unfold",
        dtypes="float complex",
        samples=[
            Sample(T(2, 1, 3, 4), (2, 3)),
            Sample(T(1, 1, 4, 4), 2, dilation=2, padding=1, stride=2),
        ],
    ),
    Op("nn.functional.fold", dtypes="float complex", samples=[Sample(T(1, 4, 6), (3, 4), (2, 2))]),
]
