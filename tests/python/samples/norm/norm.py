"""Layer, RMS, group, batch and instance normalisation."""

from samples.common import Error, Op, Sample, T

OPS = [
    Op(
        "nn.functional.layer_norm",
        [
            Sample(T(4, 3, 6), [6]),
            Sample(T(4, 6), [6], T(6), T(6)),
            Sample(T(2, 3, 4), [3, 4], T(3, 4)),
            Sample(T(5, 6, layout="transposed"), [6], T(6), T(6), 1e-3),
            Sample(T(0, 6), [6], T(6)),
        ],
        tolerance=4,
        errors=[
            Error(RuntimeError, "input's shape must end in", Sample(T(2, 3), [4])),
            Error(RuntimeError, "weight must have shape", Sample(T(2, 3), [3], T(2))),
        ],
    ),
    Op(
        "rms_norm",
        [
            Sample(T(4, 6), [6]),
            Sample(T(4, 6), [6], T(6)),
            Sample(T(2, 4, 6), [4, 6], T(4, 6), 1e-3),
            Sample(T(5, 6, layout="strided"), [6], T(6), 1e-5),
        ],
        tolerance=4,
    ),
    Op(
        "nn.functional.group_norm",
        [
            Sample(T(4, 6, 3), 2),
            Sample(T(4, 6, 3, 5), 3, T(6), T(6)),
            Sample(T(1, 4, 2), 4, T(4)),
            Sample(T(2, 6, 3, 5, layout="channels_last"), 2, T(6), T(6), 1e-3),
        ],
        tolerance=4,
        errors=[
            Error(RuntimeError, "num_groups must divide the number of", Sample(T(4, 6, 2), 4)),
        ],
    ),
    Op(
        "nn.functional.batch_norm",
        [
            Sample(T(4, 3, 5), None, None, T(3), T(3), True),
            Sample(T(6, 3), None, None, T(3), T(3), True),
            Sample(T(4, 3, 2, 5, layout="channels_last"), None, None, T(3), T(3), True, 0.2, 1e-3),
            Sample(T(4, 3, 5), T(3, grad=False), T(3, low=0.5, grad=False), T(3), T(3)),
        ],
        tolerance=8,
    ),
    Op(
        "nn.functional.instance_norm",
        [
            Sample(T(4, 3, 5)),
            Sample(T(2, 3, 4, 5), weight=T(3), bias=T(3)),
        ],
        tolerance=8,
    ),
]
