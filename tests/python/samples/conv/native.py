"""Samples of the operators that all convolutions are made of, and of their backward."""

from samples.common import Sample, T, aten

FEWER = "its kernels take fewer dtypes, and some of them have no derivative"
LINE, IMAGE = T(2, 2, 6), T(1, 4, 5, 5)
PLAIN = [1], [0], [1], False, [0], 1
STRIDED = [2, 1], [1, 0], [1, 2], False, [0, 0], 2
TRANSPOSED = [2], [1], [1], True, [1], 1
SWITCHES = False, False, True, True
ALL = [True, True, True]

CALLS = [
    Sample(LINE, T(3, 2, 3), T(3), *PLAIN),
    Sample(IMAGE, T(2, 2, 3, 2), None, *STRIDED),
    Sample(LINE, T(2, 3, 3), T(3), *TRANSPOSED),
]

OPS = [
    aten("convolution", CALLS, dtypes="full complex64", tolerance=4, beyond_torch=FEWER),
    aten(
        "_convolution",
        [Sample(*call.args, *SWITCHES) for call in CALLS],
        dtypes="full",
        tolerance=4,
        beyond_torch=FEWER,
    ),
    aten(
        "convolution_backward",
        [
            Sample(T(2, 3, 4), LINE, T(3, 2, 3), [3], *PLAIN, ALL),
            Sample(T(1, 2, 3, 3), IMAGE, T(2, 2, 3, 2), None, *STRIDED, [True, True, False]),
            Sample(T(2, 3, 12), LINE, T(2, 3, 3), [3], *TRANSPOSED, ALL),
        ],
        dtypes="full",
        tolerance=8,
        beyond_torch=FEWER,
    ),
]
