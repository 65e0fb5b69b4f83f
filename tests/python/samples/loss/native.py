"""Samples of the losses that src/ops/loss has by operators' names, and of their backward."""

import math

from samples.common import Op, Sample, T, aten

X, Y = T(4, 5), T(4, 5)
GRAD = T(4, 5)
NONE, MEAN, SUM = 0, 1, 2
UNIT = {"low": 0.05, "high": 0.95}
FIXED = T(4, 5, grad=False)
LOGITS = T(4, 3)
WEIGHT = T(3, low=0.5, grad=False)


def classes(*shape, low=0):
    """Numbers of classes, of which there are three."""
    return T(*shape, dtype="int64", low=low, high=2)


def signs(*shape):
    """Targets of 1, one for each row or element."""
    return T(*shape, low=1, high=1, grad=False)


def reductions(*settings):
    """Cotangent, input, target for each reduction, and settings of the loss."""
    return [Sample(GRAD if r == NONE else T(), X, Y, r, *settings) for r in (NONE, MEAN, SUM)]


def counted(target):
    """The total weight of all targets, each of weight 1."""
    count = math.prod(target.shape)
    return T(low=count, high=count, grad=False)


IMAGES, PLANES = T(2, 3, 2, 2), classes(2, 2, 2)

OPS = [
    Op("_C._nn.log_sigmoid", [Sample(X), Sample(T())]),
    aten(
        "_linear_cross_entropy",
        [
            Sample(X, T(3, 5), classes(4), T(3), None, MEAN, -100, 0.0),
            Sample(X, T(3, 5), classes(4), None, WEIGHT, SUM, 1, 0.1, 2),
        ],
        dtypes="full",
        tolerance=8,
        beyond_torch="it has no operator of that name",
    ),
    aten("mse_loss_backward", reductions()),
    aten("huber_loss_backward", reductions(0.7)),
    aten("smooth_l1_loss_backward", reductions(1.0)),
    aten(
        "soft_margin_loss_backward",
        [Sample(GRAD if r == NONE else T(), X, FIXED, r) for r in (NONE, MEAN, SUM)],
    ),
    aten(
        "binary_cross_entropy_backward",
        [
            Sample(GRAD, T(4, 5, **UNIT), T(4, 5, **UNIT, grad=False), None, NONE),
            Sample(
                T(),
                T(4, 5, **UNIT),
                T(4, 5, **UNIT, grad=False),
                T(4, 5, **UNIT, grad=False),
                MEAN,
            ),
        ],
        tolerance=4,
    ),
    aten("soft_margin_loss", [Sample(X, FIXED), Sample(X, FIXED, NONE), Sample(X, FIXED, SUM)]),
    aten("hinge_embedding_loss", [Sample(X, signs(4, 5)), Sample(X, signs(4, 5), 0.5, NONE)]),
    Op(
        "cosine_embedding_loss",
        [Sample(X, Y, signs(4)), Sample(X, Y, signs(4), 0.5, NONE)],
        tolerance=4,
    ),
    Op(
        "margin_ranking_loss",
        [Sample(T(4), T(4), signs(4)), Sample(T(4), T(4), signs(4), 0.5, SUM)],
    ),
    aten("pairwise_distance", [Sample(X, Y), Sample(X, Y, 1.0, 1e-3, True), Sample(X, T(5), 3.0)]),
    Op(
        "poisson_nll_loss",
        [
            Sample(X, T(4, 5, low=0, high=4, grad=False), True, False, 1e-8, MEAN),
            Sample(T(4, 5, low=0.5), T(4, 5, low=0, high=4, grad=False), False, True, 1e-8, NONE),
        ],
        tolerance=4,
    ),
    Op(
        "triplet_margin_loss",
        [Sample(X, Y, GRAD), Sample(X, Y, GRAD, 0.5, 2.0, 1e-6, True, NONE)],
        tolerance=4,
    ),
    aten(
        "cross_entropy_loss",
        [
            Sample(LOGITS, classes(4)),
            Sample(LOGITS, classes(4), WEIGHT, SUM, 1, 0.1),
            Sample(LOGITS, T(4, 3, **UNIT), None, NONE),
        ],
        tolerance=4,
    ),
    aten("nll_loss_nd", [Sample(LOGITS, classes(4)), Sample(IMAGES, PLANES, WEIGHT, NONE)]),
    aten("nll_loss2d", [Sample(IMAGES, PLANES), Sample(IMAGES, PLANES, WEIGHT, NONE, 1)]),
    *[
        aten(
            f"nll_loss{form}_forward",
            [
                Sample(x, target, None, MEAN, -100),
                Sample(x, target, WEIGHT, SUM, 1),
                Sample(x, target, WEIGHT, NONE, -100),
            ],
        )
        for form, x, target in (("", LOGITS, classes(4)), ("2d", IMAGES, PLANES))
    ],
    *[
        aten(
            f"nll_loss{form}_backward",
            [
                Sample(T(), x, target, None, MEAN, -100, counted(target)),
                Sample(T(*target.shape), x, target, WEIGHT, NONE, -100, counted(target)),
            ],
            beyond_torch="it asks for contiguous targets, and takes fewer dtypes",
        )
        for form, x, target in (("", LOGITS, classes(4)), ("2d", IMAGES, PLANES))
    ],
    aten(
        "multilabel_margin_loss_forward",
        [Sample(LOGITS, classes(4, 3, low=-1), r) for r in (NONE, MEAN, SUM)],
        dtypes="full",
        gradgrad=False,
    ),
]
