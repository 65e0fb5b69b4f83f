"""Samples of src/ops/fft/frequencies.cpp."""

import numpy as np
from samples.common import Error, Op, Sample, T


def _frequencies(function):
    return lambda n, d=1.0, dtype=None: function(n, d) if n else np.zeros(0)


def _shift(function):
    return lambda x, dim=None: function(x, dim)


def _factory(name, lengths):
    return Op(
        f"fft.{name}",
        [
            *[Sample(n, dtype="float64") for n in lengths],
            Sample(6, 0.25, dtype="float32"),
            Sample(7, d=3.0, dtype="float64"),
        ],
        reference=_frequencies(getattr(np.fft, name)),
        dtypes="float32",
        grad=False,
        errors=[Error(RuntimeError, "floating point", Sample(4, dtype="int64"))],
    )


def _shifting(name):
    return Op(
        f"fft.{name}",
        [
            Sample(T(5)),
            Sample(T(3, 4)),
            Sample(T(3, 4), 0),
            Sample(T(2, 3, 4), dim=(0, -1)),
            Sample(T(2, 3, 4, layout="transposed"), (1,)),
            Sample(T(0, 3)),
        ],
        reference=_shift(getattr(np.fft, name)),
        dtypes="float complex int bool",
        errors=[
            Error(IndexError, "out of range", Sample(T(3), 1)),
            Error(RuntimeError, "shifts", Sample(T())),
        ],
    )


OPS = [
    _factory("fftfreq", (0, 1, 2, 5, 8)),
    _factory("rfftfreq", (1, 2, 5, 8)),
    _shifting("fftshift"),
    _shifting("ifftshift"),
]
