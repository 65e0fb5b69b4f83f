"""Samples of the operators of src/ops/resample by their own names, and of their backward."""

from samples.common import Op, Sample, T, aten

INPUT = {1: T(2, 3, 7), 2: T(2, 3, 5, 6), 3: T(1, 1, 3, 4, 5)}
LARGER, SMALLER = [9, 8, 7], [3, 2, 4]
# Name -> (directions, whether corners may be aligned).
MODES = {
    "upsample_nearest1d": (1, False),
    "upsample_nearest2d": (2, False),
    "upsample_nearest3d": (3, False),
    "_upsample_nearest_exact1d": (1, False),
    "_upsample_nearest_exact2d": (2, False),
    "_upsample_nearest_exact3d": (3, False),
    "upsample_linear1d": (1, True),
    "upsample_bilinear2d": (2, True),
    "upsample_trilinear3d": (3, True),
    "upsample_bicubic2d": (2, True),
    "_upsample_bilinear2d_aa": (2, True),
    "_upsample_bicubic2d_aa": (2, True),
}


def settings(space, aligns):
    """(output size, further settings) of some calls: larger, smaller, by a stated factor."""
    corners = [[False], [True]] if aligns else [[]]
    for sizes in (LARGER[:space], SMALLER[:space]):
        for corner in corners:
            yield sizes, corner
    stated = [int(n * 1.7) for n in INPUT[space].shape[2:]]
    yield stated, [*corners[0], *[1.7] * space]


def rows(name):
    """The row of an operator, of its form that takes factors, and of its backward."""
    space, aligns = MODES[name]
    x = INPUT[space]
    corner = [False] if aligns else []
    dtypes = "full"
    return [
        aten(name, [Sample(x, *call_of(s)) for s in settings(space, aligns)], dtypes=dtypes),
        aten(
            f"{name}.vec",
            [
                Sample(x, LARGER[:space], *corner, None),
                Sample(x, None, *corner, [1.7] * space),
                Sample(x, None, *corner, [0.6] * space),
            ],
            dtypes=dtypes,
        ),
        aten(
            f"{name}_backward",
            [
                Sample(T(*x.shape[:2], *size), size, list(x.shape), *rest)
                for size, rest in settings(space, aligns)
            ],
            dtypes=dtypes,
        ),
    ]


def call_of(setting):
    """Output size and settings as the arguments that follow the input."""
    size, rest = setting
    return size, *rest


IMAGE, VOLUME = T(2, 2, 3, 3), T(1, 1, 2, 3, 4)
POINTS = T(2, 2, 3, 2, low=-1.4, high=1.4)
POINTS3 = T(1, 2, 2, 3, 3, low=-1.4, high=1.4)
WAYS = [(mode, padding, align) for mode in (0, 1, 2) for padding in (0, 1, 2) for align in (False,)]
FLAT = [Sample(IMAGE, POINTS, *way) for way in WAYS]
SOLID = [Sample(VOLUME, POINTS3, *way) for way in WAYS if way[0] < 2]

OPS = [
    *[row for name in MODES for row in rows(name)],
    Op("grid_sampler", FLAT[::4] + SOLID[::4], dtypes="full"),
    Op("grid_sampler_2d", FLAT, dtypes="full"),
    Op("grid_sampler_3d", SOLID, dtypes="full"),
    aten("_grid_sampler_2d_cpu_fallback", FLAT[:4], dtypes="float32"),
    aten(
        "grid_sampler_2d_backward",
        [Sample(T(2, 2, 2, 3), IMAGE, POINTS, *way, [True, True]) for way in WAYS],
        dtypes="full",
    ),
    aten(
        "grid_sampler_3d_backward",
        [
            Sample(T(1, 1, 2, 2, 3), VOLUME, POINTS3, *way, [True, True])
            for way in WAYS
            if way[0] < 2
        ],
        dtypes="full",
    ),
    aten(
        "affine_grid_generator",
        [Sample(T(2, 2, 3), [2, 3, 4, 5], False), Sample(T(2, 3, 4), [2, 1, 3, 4, 2], True)],
        dtypes="full",
    ),
    aten(
        "affine_grid_generator_backward",
        [
            Sample(T(2, 4, 5, 2), [2, 3, 4, 5], False),
            Sample(T(2, 3, 4, 2, 3), [2, 1, 3, 4, 2], True),
        ],
        dtypes="full",
    ),
]
