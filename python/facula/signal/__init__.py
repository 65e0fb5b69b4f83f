"""Signal processing: window functions in `facula.signal.windows`."""

from __future__ import annotations

from facula import _missing

__all__ = ["windows"]


def __getattr__(name):
    if name not in __all__:
        raise _missing.attribute(__name__, name)
    return _missing.submodule(__name__, name)


def __dir__():
    return sorted({*globals(), *__all__})
