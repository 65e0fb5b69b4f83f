"""Automatic mixed precision on CUDA, as it was called before `facula.amp`."""

from __future__ import annotations

from facula import _missing

_NAMES = {
    "autocast_mode": "autocast custom_bwd custom_fwd",
    "grad_scaler": "GradScaler",
}
_FILE_OF = {name: file for file, names in _NAMES.items() for name in names.split()}


def __getattr__(name):
    if name in _FILE_OF:
        return getattr(_missing.submodule(__name__, _FILE_OF[name]), name)
    if name in _NAMES:
        return _missing.submodule(__name__, name)
    raise _missing.attribute(__name__, name)


def __dir__():
    return sorted({*globals(), *_FILE_OF, *_NAMES})
