"""Softmax and log-softmax."""

import numpy as np
from samples.common import Error, Op, Sample, T


def softmax(x, dim, **_):
    e = np.exp(x - x.max(axis=dim, keepdims=True))
    return e / e.sum(axis=dim, keepdims=True)


def log_softmax(x, dim, **_):
    return np.log(softmax(x, dim))


SAMPLES = [
    Sample(T(5, 7), 1),
    Sample(T(5, 7), 0),
    Sample(T(3, 40, 5), 1),
    Sample(T(2, 300), -1),
    Sample(T(4, 5, 6, layout="transposed"), -2),
    Sample(T(3, 4, low=-80, high=80), 1),
    Sample(T(), 0),
    Sample(T(1, 3), 0),
]
ERRORS = [
    Error(IndexError, "Dimension out of range", Sample(T(2, 3), 2)),
    Error(NotImplementedError, "not implemented for 'Long'", Sample(T(2, 3, dtype="int64"), 1)),
]

OPS = [
    Op("softmax", SAMPLES, reference=softmax, errors=ERRORS),
    Op("log_softmax", SAMPLES, reference=log_softmax, errors=ERRORS),
]
