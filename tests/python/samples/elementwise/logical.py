"""Logic on truth values."""

import numpy as np
from samples.common import Op, Sample, T
from samples.elementwise.comparison import EVERY, pairs


def tensors():
    """Pairs without the one that has a number."""
    return [s for s in pairs() if len(s.tensors()) == 2]


OPS = [
    Op("logical_and", tensors(), np.logical_and, EVERY, grad=False),
    Op("logical_or", tensors(), np.logical_or, EVERY, grad=False),
    Op("logical_xor", tensors(), np.logical_xor, EVERY, grad=False),
    Op(
        "logical_not",
        [Sample(T(5, low=0, high=1)), Sample(T(2, 3, layout="strided")), Sample(T())],
        np.logical_not,
        EVERY,
        grad=False,
    ),
]
