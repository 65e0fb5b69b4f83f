"""Samples of src/ops/fft/volumes.cpp."""

import numpy as np
from samples.common import Error, Op, Sample, T

ALL = "full complex int64 bool"
REAL = "full int64 bool"
OTHER = {"backward": "forward", "forward": "backward", "ortho": "ortho", None: "forward"}


def _sizes(x, s, dim, halved):
    """s and dim as NumPy wants them: both given, s without -1."""
    if dim is None:
        dim = range(x.ndim - len(s), x.ndim) if s is not None else range(x.ndim)
    dim = [d % x.ndim for d in dim]
    full = [2 * (x.shape[d] - 1) if halved and d == dim[-1] else x.shape[d] for d in dim]
    return [n if n != -1 else f for n, f in zip(s or full, full, strict=True)], dim


def _numpy(function, halved=False):
    def reference(x, s=None, dim=None, norm=None):
        s, dim = _sizes(x, s, dim, halved)
        return function(x, s=s, axes=dim, norm=norm) if dim else np.asarray(x)

    return reference


def _hfftn(x, s=None, axes=None, norm=None):
    return np.fft.irfftn(np.conj(x), s=s, axes=axes, norm=OTHER[norm])


def _ihfftn(x, s=None, axes=None, norm=None):
    return np.conj(np.fft.rfftn(x, s=s, axes=axes, norm=OTHER[norm]))


FUNCTIONS = {
    "fft": _numpy(np.fft.fftn),
    "ifft": _numpy(np.fft.ifftn),
    "rfft": _numpy(np.fft.rfftn),
    "irfft": _numpy(np.fft.irfftn, halved=True),
    "hfft": _numpy(_hfftn, halved=True),
    "ihfft": _numpy(_ihfftn),
}


def _samples():
    return [
        Sample(T(3, 4)),
        Sample(T(3, 4), (2, 5)),
        Sample(T(3, 4), s=(-1, 3)),
        Sample(T(3, 4), dim=(1, 0)),
        Sample(T(2, 3, 4), s=(4, 3), dim=(0, 2), norm="ortho"),
        Sample(T(2, 3, 4), dim=(-1, -3), norm="forward"),
        Sample(T(2, 3, 4, layout="transposed"), dim=(0, 1), norm="backward"),
        Sample(T(3, 4), dim=(0,)),
        Sample(T(0, 3, 4), dim=(1, 2)),
    ]


def _samples_n():
    return [Sample(T(2, 3, 4)), Sample(T(2, 3, 4), s=(5,)), Sample(T(5)), Sample(T(2, 2, 2, 3))]


def _errors():
    return [
        Error(RuntimeError, "same length", Sample(T(3, 4), s=(2,), dim=(0, 1))),
        Error(RuntimeError, "unique", Sample(T(3, 4), dim=(0, -2))),
        Error(IndexError, "out of range", Sample(T(3, 4), dim=(0, 2))),
        Error(RuntimeError, "data points (0)", Sample(T(3, 4), s=(2, 0))),
        Error(RuntimeError, "normalization mode", Sample(T(3, 4), norm="x")),
        Error(NotImplementedError, "Half", Sample(T(3, 4, dtype="float16"))),
    ]


def _errors_n(name):
    shape = Error(RuntimeError, "shape with 3", Sample(T(3, 4), s=(1, 2, 3)))
    if name in ("fft", "ifft"):
        return [shape]
    return [shape, Error(RuntimeError, "at least one axis", Sample(T(3, 4), dim=()))]


def _row(name, suffix):
    n = suffix == "n"
    real = name in ("rfft", "ihfft")
    several = _samples_n() if n else [Sample(T(2, 3, 4))]
    empty = [Sample(T(3, 4), dim=()), Sample(T())] if n and name in ("fft", "ifft") else []
    errors = [*_errors(), *(_errors_n(name) if n else ())]
    if real:
        errors.append(Error(TypeError, "real input", Sample(T(3, 4, dtype="complex64"))))
    function = FUNCTIONS[name]
    return Op(
        f"fft.{name}{suffix}",
        [*_samples(), *several, *empty],
        reference=function
        if n
        else lambda x, s=None, dim=(-2, -1), norm=None: function(x, s, dim, norm),
        dtypes=REAL if real else ALL,
        tolerance=10,
        errors=errors,
    )


OPS = [_row(name, suffix) for suffix in ("n", "2") for name in FUNCTIONS]
