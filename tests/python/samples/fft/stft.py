"""Samples of src/ops/fft/stft.cpp."""

import numpy as np
from samples.common import Error, Op, Sample, T


def _stft(
    x,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    pad_mode="reflect",
    normalized=False,
    onesided=None,
    return_complex=None,
    align_to_window=None,
):
    hop, length = hop_length or n_fft // 4, win_length or n_fft
    before = (n_fft - length) // 2
    window = np.ones(length) if window is None else window
    window = np.pad(window, (before, n_fft - length - before))
    batch = x.reshape(-1, x.shape[-1])
    if center:
        batch = np.pad(
            batch, ((0, 0), (n_fft // 2, n_fft // 2)), pad_mode.replace("replicate", "edge")
        )
    if align_to_window:
        batch = np.pad(batch, ((0, 0), (before, n_fft - length - before)))
    count = (batch.shape[-1] - n_fft) // hop + 1
    frames = np.stack([batch[:, k * hop : k * hop + n_fft] * window for k in range(count)], -1)
    half = onesided if onesided is not None else not np.iscomplexobj(frames)
    norm = "ortho" if normalized else "backward"
    found = (np.fft.rfft if half else np.fft.fft)(frames, axis=1, norm=norm)
    found = found.reshape(*x.shape[:-1], *found.shape[1:])
    return found if return_complex else np.stack([found.real, found.imag], -1)


def _window(n, **options):
    return T(n, low=0.5, high=1.5, **options)


COMPLEX = {"return_complex": True}

OPS = [
    Op(
        "stft",
        [
            Sample(T(20), 8, window=_window(8), **COMPLEX),
            Sample(T(2, 20), 8, 2, 8, _window(8), **COMPLEX),
            Sample(T(2, 21), 8, 3, 5, _window(5), True, "constant", **COMPLEX),
            Sample(T(2, 20), 7, 2, 7, _window(7), pad_mode="replicate", **COMPLEX),
            Sample(T(20), 8, 2, 6, _window(6), center=False, **COMPLEX),
            Sample(T(20), 8, 2, 5, _window(5), center=False, align_to_window=True, **COMPLEX),
            Sample(T(20), 8, 2, 8, _window(8), onesided=False, normalized=True, **COMPLEX),
            Sample(T(20), 8, 4, 4, _window(4), **COMPLEX),
        ],
        reference=_stft,
        dtypes="full",
        layouts=False,
        tolerance=10,
        errors=[
            Error(RuntimeError, "return_complex", Sample(T(20), 8)),
            Error(RuntimeError, "n_fft", Sample(T(20), 21, center=False, **COMPLEX)),
            Error(RuntimeError, "n_fft", Sample(T(20), 0, 1, center=False, **COMPLEX)),
            Error(RuntimeError, "hop_length", Sample(T(20), 8, 0, **COMPLEX)),
            Error(RuntimeError, "win_length", Sample(T(20), 8, 2, 9, **COMPLEX)),
            Error(RuntimeError, "win_length", Sample(T(20), 8, 2, 0, **COMPLEX)),
            Error(RuntimeError, "window", Sample(T(20), 8, 2, 8, _window(7), **COMPLEX)),
            Error(RuntimeError, "1D or 2D", Sample(T(1, 2, 20), 8, center=False, **COMPLEX)),
            Error(RuntimeError, "center=False", Sample(T(20), 8, align_to_window=True, **COMPLEX)),
            Error(RuntimeError, "onesided", Sample(T(20, dtype="complex64"), 8, onesided=True)),
            Error(NotImplementedError, "floating", Sample(T(20, dtype="int64"), 8, **COMPLEX)),
            Error(RuntimeError, "adding", Sample(T(4), 8, **COMPLEX)),
        ],
    ),
    Op(
        "istft",
        [
            Sample(T(5, 6), 8, window=_window(8, dtype="float64")),
            Sample(T(2, 5, 6), 8, 2, 8, _window(8, dtype="float64")),
            Sample(T(2, 5, 6), 8, 2, 5, _window(5, dtype="float64")),
            Sample(T(2, 4, 6), 7, 2, 7, _window(7, dtype="float64"), length=11),
            Sample(T(2, 5, 6), 8, 2, 8, _window(8, dtype="float64"), length=7),
            Sample(T(2, 5, 6), 8, 2, 8, _window(8, dtype="float64"), center=False),
            Sample(T(2, 8, 6), 8, 2, 8, _window(8, dtype="float64"), normalized=True),
            Sample(T(8, 6), 8, 2, 8, _window(8, dtype="float64"), return_complex=True),
            Sample(T(8, 6), 8, 2, 8, _window(8, dtype="float64"), onesided=False),
        ],
        dtypes="complex128",  # as the windows: rounding of another dtype differs
        layouts=False,
        tolerance=10,
        errors=[
            Error(TypeError, "complex", Sample(T(5, 6, dtype="float32"), 8)),
            Error(IndexError, "dimensions", Sample(T(5), 8)),
            Error(RuntimeError, "dimensions", Sample(T(1, 2, 5, 6), 8)),
            Error(RuntimeError, "empty", Sample(T(5, 0), 8)),
            Error(RuntimeError, "frequencies", Sample(T(5, 6), 10)),
            Error(RuntimeError, "hop_length", Sample(T(5, 6), 8, 0)),
            Error(RuntimeError, "hop_length", Sample(T(5, 6), 8, 9)),
            Error(RuntimeError, "win_length", Sample(T(5, 6), 8, 2, 9)),
            Error(RuntimeError, "window", Sample(T(5, 6), 8, 2, 8, _window(7, dtype="float64"))),
            Error(RuntimeError, "onesided", Sample(T(5, 6), 8, return_complex=True)),
            Error(RuntimeError, "at least one", Sample(T(5, 6), 8, length=0)),
            Error(
                RuntimeError,
                "overlap",
                Sample(T(5, 6), 8, 8, 8, T(8, low=0, high=0, dtype="float32")),
            ),
        ],
    ),
]
