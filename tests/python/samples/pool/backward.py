"""Samples of the backward operators of src/ops/pool/pool.cpp, and of pooling with its indices."""

from samples.common import Sample, T, aten

FEWER = "its kernels take fewer dtypes, and some of them have no derivative"
# PyTorch reads indices without their strides, which the table changes in float32 alone.
READS_INDICES = {"dtypes": "float64", "beyond_torch": FEWER}
IMAGE, VOLUME = T(1, 2, 5, 6, unique=True), T(1, 2, 3, 3, 4, unique=True)
LAST = T(2, 3, 5, 6, unique=True, layout="channels_last")
LINE = T(2, 2, 11, unique=True)


def positions(*shape, within):
    """Indices into the plane of the input, one for each element of the result."""
    return T(*shape, dtype="int64", low=0, high=within - 1)


def averages(space):
    """Cotangent, input, and settings of an average over 2 in each direction, then with padding."""
    sides = (5, 6, 4)[:space]
    x = T(1, 2, *sides)
    plain = [n // 2 for n in sides]
    padded = [(n + 2 - 3) // 2 + 1 for n in sides]
    return [
        Sample(T(1, 2, *plain), x, [2] * space, [2] * space, [0] * space, False, True, None),
        Sample(T(1, 2, *padded), x, [3] * space, [2] * space, [1] * space, False, False, None),
        Sample(T(1, 2, *padded), x, [3] * space, [2] * space, [1] * space, False, True, 5),
        Sample(T(2, *plain), T(2, *sides), [2] * space, [], [0] * space, False, True, None),
    ]


def maxima(space):
    """As above, with the positions of the maxima."""
    sides = (5, 6, 4)[:space]
    plain = [n // 2 for n in sides]
    count = 5 * 6 * (4 if space == 3 else 1)
    settings = [2] * space, [2] * space, [0] * space, [1] * space, False
    return [
        Sample(T(*b, *plain), T(*b, *sides), *settings, positions(*b, *plain, within=count))
        for b in ((1, 2), (2,))
    ]


OPS = [
    aten("max_pool1d_with_indices", [Sample(LINE, [3]), Sample(LINE, [3], [2], [1])]),
    aten(
        "max_pool2d_with_indices",
        [Sample(IMAGE, [3]), Sample(LAST, [3, 2], [2, 2], [1, 1]), Sample(T(2, 5, 6), [2])],
    ),
    aten(
        "max_pool3d_with_indices",
        [Sample(VOLUME, [2]), Sample(VOLUME, [3, 2, 2], [2], [1], ceil_mode=True)],
    ),
    *[aten(f"avg_pool{n}d_backward", averages(n), dtypes="full") for n in (2, 3)],
    *[aten(f"max_pool{n}d_with_indices_backward", maxima(n), **READS_INDICES) for n in (2, 3)],
    aten(
        "_adaptive_avg_pool2d_backward",
        [Sample(T(1, 2, 3, 4), T(1, 2, 5, 6)), Sample(T(2, 1, 1), T(2, 5, 6))],
    ),
    aten(
        "_adaptive_avg_pool3d_backward",
        [Sample(T(1, 2, 2, 3, 4), T(1, 2, 3, 5, 6)), Sample(T(2, 1, 1, 2), T(2, 3, 3, 3))],
    ),
    aten(
        "adaptive_max_pool2d_backward",
        [
            Sample(T(1, 2, 3, 4), T(1, 2, 5, 6), positions(1, 2, 3, 4, within=30)),
            Sample(T(2, 3, 4), T(2, 5, 6), positions(2, 3, 4, within=30)),
        ],
        **READS_INDICES,
    ),
    aten(
        "adaptive_max_pool3d_backward",
        [Sample(T(1, 2, 2, 3, 4), T(1, 2, 3, 5, 6), positions(1, 2, 2, 3, 4, within=90))],
        **READS_INDICES,
    ),
    aten(
        "fractional_max_pool2d_backward",
        [Sample(T(1, 2, 3, 4), T(1, 2, 5, 6), [2, 2], [3, 4], positions(1, 2, 3, 4, within=30))],
        **READS_INDICES,
    ),
    aten(
        "fractional_max_pool3d_backward",
        [
            Sample(
                T(1, 2, 2, 3, 4),
                T(1, 2, 3, 5, 6),
                [2, 2, 2],
                [2, 3, 4],
                positions(1, 2, 2, 3, 4, within=90),
            )
        ],
        **READS_INDICES,
    ),
]
