"""Short-time transforms: what stft made, istft turns back."""

import warnings

import facula
import pytest
from isolated import run

CASES = {
    "plain": {},
    "hop": {"hop_length": 3},
    "short window": {"win_length": 11},
    "odd length": {"n_fft": 15},
    "normalized": {"normalized": True},
    "both sides": {"onesided": False},
    "constant border": {"pad_mode": "constant"},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("batch", [(), (3,)])
def test_istft_inverts_stft(case, batch):
    options = {"n_fft": 16, **CASES[case]}
    n_fft, pad_mode = options.pop("n_fft"), options.pop("pad_mode", "reflect")
    facula.manual_seed(1)
    x = facula.randn(*batch, 90, dtype=facula.float64)
    window = facula.hann_window(options.get("win_length", n_fft), dtype=facula.float64) + 0.1
    spectra = facula.stft(
        x, n_fft, window=window, pad_mode=pad_mode, return_complex=True, **options
    )
    found = facula.istft(spectra, n_fft, window=window, length=90, **options)
    end = 80  # the frames that there are reach at least so far
    assert facula.allclose(found[..., :end], x[..., :end])


def test_complex_signals_and_windows():
    x = facula.randn(2, 60, dtype=facula.complex128)
    window = facula.hann_window(16, dtype=facula.float64) + 0.5
    spectra = x.stft(16, 4, window=window)
    assert spectra.shape == (2, 16, 16)
    back = spectra.istft(16, 4, window=window, onesided=False, return_complex=True)
    assert facula.allclose(back, x)


def test_meta_tensors():
    x = facula.empty(2, 60, device="meta")
    window = facula.empty(16, device="meta")
    spectra = facula.stft(x, 16, 4, window=window, return_complex=True)
    assert spectra.shape == (2, 9, 16) and spectra.is_meta
    assert facula.istft(spectra, 16, 4, window=window).shape == (2, 60)


WARNED = """
import warnings
import facula

x, window = facula.randn(60), facula.ones(16)
CALLS = {
    "window is not given": lambda: facula.stft(x, 16, return_complex=True),
    "deprecated": lambda: facula.stft(x, 16, window=window, return_complex=False),
    "istft(): window": lambda: facula.istft(facula.ones(9, 8, dtype=facula.complex64), 16),
    "zeros follow": lambda: facula.istft(
        facula.ones(9, 8, dtype=facula.complex64), 16, window=window, length=99
    ),
}
for text, call in CALLS.items():
    for times in (1, 0):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            call()
        assert [text in str(w.message) for w in seen] == [True] * times, (text, seen)
"""


def test_a_signal_longer_than_its_frames_ends_in_zeros():
    x = facula.randn(60, dtype=facula.float64)
    window = facula.ones(16, dtype=facula.float64)
    spectra = facula.stft(x, 16, window=window, return_complex=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = facula.istft(spectra, 16, window=window, length=90)
    assert found.shape == (90,) and not found[68:].any()
    assert facula.allclose(found[:60], x)


def test_what_is_unusual_is_warned_of_once():
    run(WARNED)
