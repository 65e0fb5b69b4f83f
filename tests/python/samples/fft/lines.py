"""Samples of src/ops/fft/lines.cpp."""

import numpy as np
from samples.common import Error, Op, Sample, T

ALL = "full complex int64 uint8 bool"
REAL = "full int64 bool"


def _reference(function):
    def call(x, n=None, dim=-1, norm=None):
        x = np.asarray(x)
        if x.shape[dim] == 0:  # numpy's irfft reads a first element
            x = np.zeros_like(x, shape=(*x.shape[:-1], 1))
        return function(x, n, dim, norm)

    return call


def _samples():
    return [
        Sample(T(5)),
        Sample(T(2, 6)),
        Sample(T(3, 4), 6),
        Sample(T(3, 5), n=3),
        Sample(T(3, 4), dim=0),
        Sample(T(3, 4), 5, 0, "ortho"),
        Sample(T(3, 4), 1),
        Sample(T(2, 3, 5), norm="forward", dim=-2),
        Sample(T(2, 3, 5, layout="transposed"), norm="backward"),
        Sample(T(0, 4)),
        Sample(T(2, 0), n=3),
        Sample(T(18, 13)),
        Sample(T(2, 53)),
    ]


def _errors():
    return [
        Error(RuntimeError, "data points (0)", Sample(T(3), 0)),
        Error(RuntimeError, "data points (-1)", Sample(T(3), -1)),
        Error(RuntimeError, "data points", Sample(T(3, 0))),
        Error(RuntimeError, "normalization mode", Sample(T(3), norm="none")),
        Error(IndexError, "out of range", Sample(T(3), dim=1)),
        Error(IndexError, "no dimensions", Sample(T())),
        Error(NotImplementedError, "Half", Sample(T(3, dtype="float16"))),
        Error(NotImplementedError, "BFloat16", Sample(T(3, dtype="bfloat16"))),
    ]


def _not_complex():
    return [Error(TypeError, "real input", Sample(T(3, dtype="complex64")))]


def _op(name, dtypes, errors=()):
    return Op(
        f"fft.{name}",
        _samples(),
        reference=_reference(getattr(np.fft, name)),
        dtypes=dtypes,
        tolerance=10,
        errors=[*_errors(), *errors],
    )


OPS = [
    _op("fft", ALL),
    _op("ifft", ALL),
    _op("rfft", REAL, _not_complex()),
    _op("irfft", ALL),
    _op("hfft", ALL),
    _op("ihfft", REAL, _not_complex()),
]
