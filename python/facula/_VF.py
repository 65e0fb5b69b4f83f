"""The operators as a module, as PyTorch's own Python code calls them."""

from __future__ import annotations

from facula import _C, _missing

_C._lazy_module(__name__)


def __getattr__(name):
    try:
        value = globals()[name] = _C._function("", name)
    except AttributeError:
        raise _missing.attribute(__name__, name) from None
    return value
