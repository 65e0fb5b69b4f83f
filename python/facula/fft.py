"""Operators of facula.fft; each is found when it is first asked for."""

from __future__ import annotations

from facula import _C, Tensor, _missing  # noqa: F401 (PyTorch's module has Tensor, too)

_C._lazy_module(__name__)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        value = globals()[name] = _C._function("fft", name)
    except AttributeError:
        raise _missing.attribute(__name__, name) from None
    return value


def __dir__():
    return sorted({*globals(), *_C._function_names("fft")})
