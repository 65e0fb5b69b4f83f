"""Samples of what src/ops/shape has for derivatives and for graphs: backward, copies, aliases."""

from samples.common import Op, Sample, T, aten

FEWER = "its kernels take fewer dtypes, and some of them have no derivative"
ALL = "float complex int bool"
ANY = "float complex int"
LINE, IMAGE, VOLUME = T(1, 2, 5), T(1, 2, 4, 5), T(1, 2, 3, 4, 5)
SIDES = {1: LINE, 2: IMAGE, 3: VOLUME}


def grown(x, pad):
    """The cotangent of a tensor that was padded by so much at each end of its last dimensions."""
    sides = list(x.shape)
    for i in range(len(pad) // 2):
        sides[-1 - i] += pad[2 * i] + pad[2 * i + 1]
    return T(*sides)


def padding_rows(kind, space):
    """Padding in so many directions, and its backward: with a batch, and without."""
    x, pad = SIDES[space], [1, 2, 2, 0, 1, 1][: 2 * space]
    inputs = [x, T(*x.shape[1:])]
    dtypes = "float complex"
    return [
        aten(
            f"{kind}_pad{space}d",
            [Sample(t, pad) for t in inputs],
            dtypes=dtypes,
            beyond_torch=FEWER,
        ),
        aten(
            f"{kind}_pad{space}d_backward",
            [Sample(grown(t, pad), t, pad) for t in inputs],
            dtypes=dtypes,
            beyond_torch=FEWER,
        ),
    ]


ROWS = T(3, 4)
VIEWS = {
    "alias": [Sample(ROWS), Sample(T())],
    "detach_copy": [Sample(ROWS), Sample(T())],
    "_reshape_alias": [Sample(T(3, 2), [2, 3], [3, 1])],
    "_unsafe_view": [Sample(ROWS, [2, -1]), Sample(T(0, 2), [0, 4])],
    "mT": [Sample(ROWS), Sample(T(2, 3, 4))],
    "mH": [Sample(ROWS), Sample(T(2, 3, 4))],
    "matrix_H": [Sample(ROWS)],
    "numpy_T": [Sample(ROWS)],
    "slice.Tensor": [
        Sample(ROWS),
        Sample(ROWS, 1, 1, 3),
        Sample(ROWS, -1, -3, None, 2),
        Sample(ROWS, 0, 2, 1),
    ],
    "linalg_diagonal": [Sample(T(2, 3, 4)), Sample(T(2, 3, 4), offset=1, dim1=0, dim2=1)],
}
NOT_LAID_OUT = {"_reshape_alias"}
NOT_DIFFERENTIABLE = {"detach_copy"}

BACKWARD = {
    "select_backward": [Sample(T(3), [3, 4], 1, 2), Sample(T(4), [3, 4], 0, -1)],
    "slice_backward": [
        Sample(T(3, 2), [3, 4], 1, 1, 3, 1),
        Sample(T(2, 4), [3, 4], 0, 0, 9223372036854775807, 2),
    ],
    "diagonal_backward": [
        Sample(T(3), [3, 4], 0, 0, 1),
        Sample(T(4, 2), [2, 3, 4], 1, 0, 1),
    ],
    "unfold_backward": [
        Sample(T(3, 2), [6], 0, 2, 2),
        Sample(T(2, 4, 3), [2, 6], 1, 3, 1),
    ],
}

OPS = [
    *[
        aten(
            name,
            samples,
            dtypes=ALL,
            layouts=name not in NOT_LAID_OUT,
            grad=name not in NOT_DIFFERENTIABLE,
            beyond_torch=FEWER,
        )
        for name, samples in VIEWS.items()
    ],
    *[aten(name, samples, dtypes=ANY) for name, samples in BACKWARD.items()],
    *[
        row
        for kind in ("reflection", "replication")
        for n in SIDES
        for row in padding_rows(kind, n)
    ],
    aten("_pad_circular", [Sample(LINE, [1, 2]), Sample(IMAGE, [1, 2, 2, 0])], dtypes=ANY),
    aten(
        "native_channel_shuffle",
        [Sample(T(1, 4, 2, 3), 2), Sample(T(2, 6, 1, 2), 3)],
        beyond_torch=FEWER,
    ),
    aten(
        "col2im",
        [
            Sample(T(1, 8, 6), [3, 4], [2, 2], [1, 1], [0, 0], [1, 1]),
            Sample(T(8, 4), [3, 4], [2, 2], [1, 1], [1, 0], [2, 2]),
        ],
        dtypes="full complex",
    ),
    aten(
        "im2col",
        [
            Sample(T(1, 2, 3, 4), [2, 2], [1, 1], [0, 0], [1, 1]),
            Sample(T(2, 3, 4), [2, 2], [1, 2], [1, 0], [2, 1]),
        ],
        dtypes="full complex",
    ),
    Op(
        "as_strided_scatter",
        [Sample(ROWS, T(2, 2), (2, 2), (4, 1), 1), Sample(ROWS, T(3), (3,), (4,))],
        dtypes=ALL,
        layouts=False,
        grad=False,  # PyTorch's gradient of self is the scattered part, and so is ours
    ),
    aten("_conj_copy", [Sample(ROWS)], dtypes="complex", beyond_torch=FEWER),
    aten("_neg_view", [Sample(ROWS)], dtypes="float complex int", beyond_torch=FEWER),
    aten("_neg_view_copy", [Sample(ROWS)], dtypes="float complex int", beyond_torch=FEWER),
    aten(
        "view_as_complex_copy",
        [Sample(T(3, 2)), Sample(T(2, 3, 2))],
        dtypes="full",
        beyond_torch=FEWER,
    ),
    aten("view_as_real_copy", [Sample(ROWS), Sample(T())], dtypes="complex"),
]
